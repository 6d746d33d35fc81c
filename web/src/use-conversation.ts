// The state of a conversation. The server owns its runs; the hook shows what they stream.
import { useStream } from "@langchain/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as api from "./api";
import type { Fields, Run } from "./api";
import { messagesOf, places, type Place } from "./branches";
import { newId } from "./ids";
import type { MessageActions } from "./message";
import { inputOf } from "./pending";
import { usePolling, useVisible } from "./polling";
import { isLocked, isLost, isOffline } from "./problems";
import { isVisible, shown, type Shown } from "./shown";
import { stateFetch, streamFetch } from "./stream";
import { isClosed } from "./threads";

const BUSY_MS = 1_500;
const IDLE_MS = 10_000;
// A hidden tab gives its connection back after this time.
const HIDDEN_MS = 30_000;
// The history of a long conversation holds its messages many times.
const HISTORY_MESSAGES = 2_000;

const NOTHING: Fields = {};

interface Server {
  thread: api.Thread;
  /** Runs that are not over, oldest first. */
  active: Run[];
  /** The newest runs, newest first. */
  runs: Run[];
  history: api.State[];
}

/** A message of the person, from Enter until the stream has it. */
interface Sent {
  message: Fields;
  isAccepted: boolean;
}

export interface Conversation {
  server: Server | null;
  messages: Shown[];
  values: Fields;
  /** The messages of the newest checkpoint by their ids. What was streamed lacks what a graph adds later. */
  stored: Map<string, Fields>;
  /** The state of the version that is shown, or of the newest checkpoint. */
  storedValues: Fields;
  places: Map<string, Place>;
  actions: MessageActions;
  questions: api.Interrupt[];
  /** Runs that wait for others, oldest first. */
  queued: Run[];
  isLoading: boolean;
  isBusy: boolean;
  isReadOnly: boolean;
  problem: unknown;
  say: (text: string, files?: Fields[]) => Promise<boolean>;
  answer: (interrupt: string, value: unknown) => Promise<boolean>;
  /** Go on from where the last run has stopped or failed. */
  proceed: () => Promise<boolean>;
  stop: () => void;
  withdraw: (run: Run) => void;
  reconnect: () => void;
}

export function useConversation(threadId: string, graph: string, onChange: () => Promise<void>): Conversation {
  const [server, setServer] = useState<Server | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [outbox, setOutbox] = useState<Sent[]>([]);
  const [leaf, setLeaf] = useState<string | null>(null);
  // What a stopped run has written: the state of the thread has it not.
  const [stopped, setStopped] = useState<{ run: string; messages: Shown[] } | null>(null);
  const { stream, live, follow } = useLive(threadId, graph);
  const { isLoading, isThreadLoading } = stream;
  const latest = useRef({ stream, live, server });
  useEffect(() => {
    latest.current = { stream, live, server };
  });
  // The run that the hook shows, and the version of the thread that it has read.
  const followed = useRef<string | null>(null);
  const version = useRef<string | null>(null);

  // Looks at the server may overlap. One that began before the shown one is outdated.
  const looks = useRef({ begun: 0, shown: 0 });
  const refresh = useCallback(async () => {
    const look = ++looks.current.begun;
    try {
      const [thread, active, runs] = await Promise.all([
        api.thread(threadId),
        api.activeRuns(threadId),
        api.runs(threadId),
      ]);
      const now = thread.state_updated_at ?? thread.updated_at;
      const isNew = version.current !== now;
      const old = latest.current.server;
      const count = Math.max(1, latest.current.live.length);
      const read =
        isNew && active.length === 0
          ? await api.history(threadId, Math.min(200, Math.ceil(HISTORY_MESSAGES / count)))
          : null;
      if (look < looks.current.shown) return;
      looks.current.shown = look;
      setServer((before) => ({ thread, active, runs, history: read ?? before?.history ?? [] }));
      if (read !== null) {
        // What no state has is of a run that was withdrawn elsewhere.
        const known = new Set(messagesOf(read[0]).map((each) => each.id));
        setOutbox((old) => old.filter((each) => !each.isAccepted || known.has(each.message.id)));
      }
      setProblem((before: unknown) => (isOffline(before) ? null : before));
      const { isLoading, isThreadLoading, error } = latest.current.stream;
      if (isThreadLoading) return;
      const next = active[0]?.run_id;
      const isUnseen = next === undefined ? isNew && version.current !== null : followed.current !== next;
      if (next === undefined) version.current = now;
      // The stream did not bring the end of its run, which the server has seen since the last look.
      const isMissed = isLoading && next === undefined && old?.active.length === 0;
      if ((!isLoading && isUnseen) || isMissed || isLost(error)) {
        followed.current = next ?? null;
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

  const active = useMemo(() => server?.active ?? [], [server]);
  const isBusy = isLoading || active.length > 0 || outbox.some((each) => !each.isAccepted);
  usePolling(refresh, isBusy || problem !== null ? BUSY_MS : IDLE_MS);

  const attempt = useCallback(
    async (work: () => Promise<unknown>): Promise<boolean> => {
      setProblem(null);
      try {
        await work();
        await refresh();
        void onChange();
        return true;
      } catch (error) {
        setProblem(error);
        void refresh();
        return false;
      }
    },
    [onChange, refresh],
  );

  const start = useCallback(
    (input: Fields | null, from?: string | null): Promise<boolean> =>
      attempt(async () => {
        const messages = (input?.messages ?? []) as Fields[];
        setOutbox((old) => [...old, ...messages.map((message) => ({ message, isAccepted: false }))]);
        try {
          await api.startRun(threadId, graph, input, from);
        } catch (error) {
          setOutbox((old) => old.filter((each) => !messages.includes(each.message)));
          throw error;
        }
        setLeaf(null);
        await refresh();
        setOutbox((old) => old.map((each) => (messages.includes(each.message) ? { ...each, isAccepted: true } : each)));
      }),
    [attempt, graph, refresh, threadId],
  );

  const questions = useMemo(
    () => (server !== null && !isBusy && leaf === null ? api.questionsOf(server.thread) : []),
    [isBusy, leaf, server],
  );
  const answer = useCallback(
    (interrupt: string, value: unknown) => attempt(() => api.respond(threadId, interrupt, value)),
    [attempt, threadId],
  );

  // A text that was refused and is sent again is the same message, so that it cannot appear twice.
  const refused = useRef<{ text: string; id: string } | null>(null);
  const say = useCallback(
    async (text: string, files: Fields[] = []): Promise<boolean> => {
      const question = questions[0];
      if (question !== undefined) return answer(question.id, text);
      const id = refused.current?.text === text ? refused.current.id : newId();
      const isAgain = refused.current?.id === id;
      refused.current = null;
      const content = files.length === 0 ? text : [{ type: "text", text }, ...files];
      if (isAgain && (await isKnown(threadId, id))) return attempt(() => Promise.resolve());
      const isSent = await start({ messages: [{ type: "human", content, id }] }, leaf);
      if (!isSent) refused.current = { text, id };
      return isSent;
    },
    [answer, attempt, leaf, questions, start, threadId],
  );

  const history = server?.history;
  const where = useMemo(() => places(history ?? [], leaf), [history, leaf]);
  const actions = useMemo<MessageActions>(
    () => ({
      edit: (id, text) => {
        const message = { type: "human", content: text, id: newId() };
        return start({ messages: [message] }, where.get(id)?.parent);
      },
      repeat: (id) => void start(null, where.get(id)?.parent),
      show: setLeaf,
    }),
    [start, where],
  );

  const branch = leaf === null ? undefined : history?.find((each) => each.checkpoint.checkpoint_id === leaf);
  const stored = useMemo(
    () => new Map((history?.[0] === undefined ? [] : messagesOf(history[0])).map((each) => [String(each.id), each])),
    [history],
  );
  // The run of a message that was just sent to a thread at rest begins at once.
  const queued = useMemo(() => {
    const sent = new Set(outbox.map((each) => each.message.id));
    const pending = active.filter((run) => run.status === "pending");
    const isNext = pending.length === active.length && pending.slice(0, 1).flatMap(inputOf).some((each) => sent.has(each.id));
    return isNext ? pending.slice(1) : pending;
  }, [active, outbox]);
  useEffect(() => {
    const known = new Set(live.map((each) => each.id));
    setOutbox((old) => without(old, known));
  }, [live]);
  const messages = useMemo(() => {
    if (branch !== undefined) return messagesOf(branch).map(shown).filter(isVisible);
    const found = [...live];
    if (stopped !== null && stopped.run === server?.runs[0]?.run_id) add(found, stopped.messages);
    // Messages of the person that no state has yet: on their way, or of the run that has just begun.
    const waiting = new Set(queued.flatMap(inputOf).map((each) => each.id));
    add(found, active.filter((run) => !queued.includes(run)).flatMap(inputOf).map(shown));
    add(found, outbox.map((each) => each.message).filter((each) => !waiting.has(each.id)).map(shown));
    return found.filter(isVisible);
  }, [active, branch, live, outbox, queued, server, stopped]);

  const error = problem ?? (isLost(stream.error) || isBusy ? null : stream.error);
  return {
    server,
    messages,
    values: branch?.values ?? stream.values,
    stored,
    storedValues: branch?.values ?? history?.[0]?.values ?? NOTHING,
    places: where,
    actions,
    questions,
    queued,
    isLoading: server === null && messages.length === 0,
    isBusy,
    isReadOnly: (server !== null && isClosed(server.thread)) || isLocked(error),
    problem: error ?? null,
    say,
    answer,
    proceed: () => start(null),
    stop: () =>
      void attempt(async () => {
        const running = (await api.activeRuns(threadId)).find((run) => run.status === "running");
        if (running !== undefined) {
          setStopped({ run: running.run_id, messages: latest.current.live });
          await api.cancel(threadId, running.run_id);
        }
        follow();
      }),
    withdraw: (run) =>
      void attempt(async () => {
        await api.cancel(threadId, run.run_id);
        setOutbox((old) => without(old, new Set(inputOf(run).map((each) => String(each.id)))));
      }),
    reconnect: () => {
      setProblem(null);
      follow();
      void refresh();
    },
  };
}

/** Return the accepted messages that are not among those with these ids, and all others. */
function without(sent: Sent[], ids: Set<string>): Sent[] {
  const left = sent.filter((each) => !each.isAccepted || !ids.has(String(each.message.id)));
  return left.length === sent.length ? sent : left;
}

/** Add the messages to a list that it has not. */
function add(list: Shown[], more: Shown[]): void {
  const ids = new Set(list.map((each) => each.id));
  for (const each of more) {
    if (!ids.has(each.id)) list.push(each);
    ids.add(each.id);
  }
}

/** Return whether the server has a message, in a run or in the state. */
async function isKnown(threadId: string, id: string): Promise<boolean> {
  try {
    const runs = await api.runs(threadId, 10);
    return runs.flatMap(inputOf).some((each) => each.id === id);
  } catch {
    return false;
  }
}

/** Follow a thread with the hook. `follow` makes it read the thread again and open its stream. */
function useLive(threadId: string, graph: string) {
  // The hook reads the thread again for another client, which it makes for other options.
  const [epoch, setEpoch] = useState(0);
  const [kept, setKept] = useState<Shown[]>([]);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const callerOptions = useMemo(() => ({ fetch: stateFetch, maxRetries: 1 }), [epoch]);
  const isVisible = useVisible(HIDDEN_MS);
  const stream = useStream({
    assistantId: graph,
    apiUrl: api.apiUrl,
    threadId: isVisible ? threadId : null,
    fetch: streamFetch,
    callerOptions,
  });
  const live = useMemo(() => stream.messages.map(shown), [stream.messages]);
  // While the hook reads the thread again, it has no state. What it had stays in the view.
  const isEmptied = live.length === 0 && !Array.isArray(stream.values.messages);
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
  return { stream, live: isVisible && !isEmptied ? live : kept, follow };
}
