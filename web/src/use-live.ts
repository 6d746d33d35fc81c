// A thread as the hook of @langchain/react streams it. The hook only watches: the page starts and cancels runs itself.
import { useStream } from "@langchain/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as api from "./api";
import type { Fields } from "./api";
import { NOTHING_WRITTEN, withEvent, type Written } from "./generative/messages";
import { products } from "./products";
import { shown, type Shown } from "./shown";
import { hear, stateFetch, streamFetch } from "./stream";
import { useVisible } from "./visible";

// A hidden tab gives its connection back after this time.
const HIDDEN_MS = 30_000;

/**
 * Follow a thread. `follow` makes the hook read the thread again and open its stream.
 *
 * @param messagesKey where its state has the messages
 */
export function useLive(threadId: string, graph: string, messagesKey: string) {
  // The hook reads the thread again for another client, which it makes for other options.
  const [epoch, setEpoch] = useState(0);
  const [kept, setKept] = useState<Shown[]>([]);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const callerOptions = useMemo(() => ({ fetch: stateFetch, maxRetries: 1 }), [epoch, messagesKey]);
  // The hook opens its stream while it is drawn, and nobody closes that of a drawing that is thrown away.
  const isVisible = useVisible(HIDDEN_MS);
  const stream = useStream({
    assistantId: graph,
    apiUrl: api.apiUrl,
    threadId: isVisible ? threadId : null,
    messagesKey,
    fetch: streamFetch,
    callerOptions,
  });
  const [written, setWritten] = useState<Written>(NOTHING_WRITTEN);
  useEffect(() => {
    // A product reads its progress by routes of its own.
    if (products[graph] !== undefined) return;
    return hear(threadId, (run, event) => setWritten((old) => withEvent(old, run, event)));
  }, [graph, threadId]);
  const live = useMemo(() => stream.messages.map(shown), [stream.messages]);
  // While the hook reads the thread again, it has no state. What it had stays in the view.
  const isEmptied = live.length === 0 && !Array.isArray((stream.values as Fields | null)?.[messagesKey]);
  const latest = useRef(live);
  useEffect(() => {
    if (live.length > 0) latest.current = live;
  }, [live]);
  const follow = useCallback(() => {
    setKept(latest.current);
    setEpoch((n) => n + 1);
  }, []);
  useEffect(() => {
    if (!isVisible) setKept(latest.current);
  }, [isVisible]);
  return { stream, live: isVisible && !isEmptied ? live : kept, written, follow };
}
