// A conversation. The server owns its runs; the hook shows them.
import { useStream } from "@langchain/react";
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as api from "./api";
import { places } from "./branches";
import { Composer } from "./composer";
import { t } from "./i18n";
import { useFollowEnd } from "./follow_end";
import { Message, shown, type Shown } from "./message";
import { Pending } from "./pending";
import { explain, isLocked } from "./problems";
import { products, type StartProps } from "./products";
import { Answers, Ask } from "./question";
import { go } from "./route";
import { titleOf } from "./sidebar";

const BUSY_MS = 1_500;
const IDLE_MS = 12_000;
const PAGE = 100;
const NOTHING = {};

interface Props {
  threadId: string;
  graph: string;
  name: string;
  /** The message that begins the conversation. */
  first: string | null;
  onFirst: () => void;
  onChange: () => Promise<void>;
  onStarted: StartProps["onStarted"];
}

interface Server {
  thread: api.Thread;
  active: api.Run[];
  runs: api.Run[];
  history: api.State[];
}

export function Conversation({ threadId, graph, name, first, onFirst, onChange, onStarted }: Props) {
  // Another client object makes the hook read the thread again and follow its next run.
  const [epoch, setEpoch] = useState(0);
  const [kept, setKept] = useState<Shown[]>([]);
  const [server, setServer] = useState<Server | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [leaf, setLeaf] = useState<string | null>(null);
  const [count, setCount] = useState(PAGE);
  const created = useRef<((ok: boolean) => void) | null>(null);
  const followed = useRef<string | null>(null);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const callerOptions = useMemo(() => ({ fetch: api.hookFetch, maxRetries: 1 }), [epoch]);
  const stream = useStream({
    assistantId: graph,
    apiUrl: api.apiUrl,
    threadId,
    fetch: api.send,
    callerOptions,
    onCreated: () => created.current?.(true),
  });
  const { isLoading, isThreadLoading } = stream;

  const live = useMemo(() => stream.messages.map(shown), [stream.messages]);
  const latest = useRef({ live, isLoading, isThreadLoading });
  useEffect(() => {
    latest.current = { live, isLoading, isThreadLoading };
  });

  const follow = useCallback(() => {
    if (latest.current.live.length > 0) setKept(latest.current.live);
    setEpoch((n) => n + 1);
  }, []);

  const refresh = useCallback(async () => {
    try {
      const [thread, active, runs] = await Promise.all([
        api.thread(threadId), api.activeRuns(threadId), api.runs(threadId),
      ]);
      const history = latest.current.isLoading ? null : await api.history(threadId);
      setServer((old) => ({ thread, active, runs, history: history ?? old?.history ?? [] }));
      const next = active[0]?.run_id;
      const idle = !latest.current.isLoading && !latest.current.isThreadLoading;
      if (next !== undefined && idle && followed.current !== next) {
        followed.current = next;
        follow();
      }
    } catch (error) {
      setProblem(error);
    }
  }, [follow, threadId]);

  // After the first load, and at the beginning and end of each run.
  useEffect(() => {
    if (isThreadLoading) return;
    const timer = setTimeout(() => {
      void refresh();
      if (!isLoading) void onChange();
    }, 0);
    return () => clearTimeout(timer);
  }, [isLoading, isThreadLoading, onChange, refresh]);

  const isBusy = isLoading || (server?.active.length ?? 0) > 0;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void refresh();
    }, isBusy ? BUSY_MS : IDLE_MS);
    return () => clearInterval(timer);
  }, [isBusy, refresh]);

  const submit = useCallback(
    (input: Record<string, unknown> | null, forkFrom?: string | null): Promise<boolean> =>
      new Promise((resolve) => {
        created.current = (ok) => {
          created.current = null;
          resolve(ok);
        };
        setProblem(null);
        setLeaf(null);
        void stream
          .submit(input, {
            // The default would cancel and delete the run in flight.
            multitaskStrategy: "enqueue",
            ...(forkFrom ? { forkFrom } : {}),
            onError: () => created.current?.(false),
          })
          .then(() => created.current?.(true));
      }),
    [stream],
  );

  const say = useCallback(
    async (text: string): Promise<boolean> => {
      const input = { messages: [{ type: "human", content: text, id: crypto.randomUUID() }] };
      if (!isBusy) return submit(input, leaf);
      try {
        await api.enqueue(threadId, graph, { input });
        await refresh();
        return true;
      } catch (error) {
        setProblem(error);
        return false;
      }
    },
    [graph, isBusy, leaf, refresh, submit, threadId],
  );

  const isStarted = useRef(false);
  useEffect(() => {
    if (first === null || isThreadLoading || isStarted.current) return;
    isStarted.current = true;
    onFirst();
    void say(first);
  }, [first, isThreadLoading, onFirst, say]);

  const act = async (work: () => Promise<unknown>) => {
    try {
      setProblem(null);
      await work();
      await refresh();
      await onChange();
    } catch (error) {
      setProblem(error);
    }
  };

  const stop = () =>
    void act(async () => {
      // The hook knows only the runs that it has started in this tab.
      const running = (await api.activeRuns(threadId)).find((run) => run.status === "running");
      if (running !== undefined) await api.cancel(threadId, running.run_id);
      await stream.stop({ cancel: false });
      follow();
    });

  const history = useMemo(() => server?.history ?? [], [server?.history]);
  const where = useMemo(() => places(history, leaf), [history, leaf]);
  const branch = leaf === null ? undefined : history.find((each) => each.checkpoint.checkpoint_id === leaf);
  const values = (branch?.values ?? stream.values);
  const messages = useMemo(() => {
    if (branch !== undefined) return ((branch.values.messages ?? []) as api.Fields[]).map(shown);
    return isThreadLoading && live.length === 0 ? kept : live;
  }, [branch, isThreadLoading, kept, live]);
  const status = server?.thread.metadata.status;
  const error = problem ?? stream.error;
  const isClosed = status === "locked" || status === "archived" || status === "pending_lock" || isLocked(error);
  const last = messages.at(-1);
  const hasFailed = !isBusy && server?.thread.status === "error";

  const { View, Message: Extra } = products[graph] ?? {};

  const { scroller, end, below, onScroll } = useFollowEnd(messages, server, stream.interrupts);

  return (
    <section className="conversation" aria-label={name}>
      <header className="row">
        <h1 className="grow">{server === null ? name : titleOf(server.thread)}</h1>
        {isClosed && <span className="badge">{t("readOnly")}</span>}
      </header>
      <div
        className="scroller grow" ref={scroller} tabIndex={-1} onScroll={onScroll}
      >
        {isThreadLoading && messages.length === 0 && <p className="empty" role="status">{t("loading")}</p>}
        {!isThreadLoading && messages.length === 0 && !isBusy && <p className="empty">{t("empty")}</p>}
        {messages.length > count && (
          <button className="quiet" onClick={() => setCount(count + PAGE)}>{messages.length - count} {t("more")}</button>
        )}
        <ol className="messages" aria-busy={isLoading}>
          {messages.slice(-count).map((each, i, list) => (
            <Message
              key={each.id} message={each} values={values} stored={branch?.values ?? history[0]?.values ?? NOTHING} Extra={Extra}
              growing={isLoading && i === list.length - 1 && each.role === "ai"}
              place={isBusy ? undefined : where.get(each.id)}
              readOnly={isClosed}
              onVersion={setLeaf}
              onEdit={(text) => submit(
                { messages: [{ type: "human", content: text, id: crypto.randomUUID() }] }, where.get(each.id)?.parent)}
              onRepeat={() => void submit(null, where.get(each.id)?.parent)}
            />
          ))}
        </ol>
        {isLoading && last?.role !== "ai" && <p className="thinking" role="status">{t("thinking")}</p>}
        <Announce text={isLoading && last?.role === "ai" ? last.text : ""} />
        <Answers runs={server?.runs ?? []} />
        {!isClosed && !isLoading && branch === undefined && stream.interrupts.map((each) => (
          <Ask
            key={each.id ?? "0"} graph={graph} threadId={threadId} value={each.value}
            onAnswer={(answer, words) => act(() => stream.respond(answer, {
              ...(each.id === undefined ? {} : { interruptId: each.id }),
              metadata: { answer: words },
            }))}
            onStarted={onStarted}
          />
        ))}
        <div ref={end} className={View === undefined ? "" : "conversation-end"} />
        <div ref={below}>
          {View !== undefined && (
            <Suspense><View threadId={threadId} values={values} isBusy={isBusy} readOnly={isClosed} say={say} /></Suspense>
          )}
        </div>
      </div>
      {(error != null || hasFailed) && !isClosed && (
        <p className="alert banner" role="alert">
          <span>{error != null ? explain(error) : t("failed")}</span>
          {hasFailed ? (
            <button onClick={() => void submit(null)}>{t("retry")}</button>
          ) : (
            <button onClick={() => { setProblem(null); follow(); void refresh(); }}>{t("reconnect")}</button>
          )}
        </p>
      )}
      {isClosed && (
        <p className="alert banner" role="status">
          <span>{t("locked")}</span>
          <button onClick={() => void act(async () => {
            const found = await api.resume(threadId);
            if (found.thread_id !== undefined) go({ thread: found.thread_id, assistant: graph });
          })}>{t("resumeNew")}</button>
        </p>
      )}
      <Pending
        runs={(server?.active ?? []).filter((run) => run.status === "pending")}
        onCancel={(run) => void act(() => api.cancel(threadId, run.run_id))}
      />
      <Composer onSend={say} onStop={isBusy ? stop : undefined} disabled={isClosed} />
    </section>
  );
}

/** Read an answer to screen readers sentence by sentence, not token by token. */
function Announce({ text }: { text: string }) {
  const sentences = /^[\s\S]*[.!?\n](?=\s|$)/.exec(text)?.[0] ?? "";
  const last = sentences.trim().split(/(?<=[.!?])\s+/).at(-1) ?? "";
  return <p className="hidden" aria-live="polite">{last}</p>;
}
