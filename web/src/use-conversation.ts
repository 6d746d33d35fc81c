// The state of a conversation. The server owns its runs; the hook shows what they stream.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as api from "./api";
import type { Fields, Run } from "./api";
import { settingsOf } from "./assistants/client";
import { contentOf, rewritten } from "./attachments/blocks";
import { places, resultsOf, type Choice, type Place } from "./branches";
import { listen, type Change } from "./changes";
import { awaited, uiOf, type UiMessage } from "./generative/messages";
import { handedTo } from "./handed";
import { newId } from "./ids";
import { runWith, useHolding } from "./holding";
import { keyOf, MESSAGES, messagesOf } from "./messages-of";
import type { MessageActions } from "./message";
import { readPartials, withPartials, type Partials } from "./partials";
import { inputOf } from "./pending";
import { isLocked, isLost, isOffline } from "./problems";
import { paired, shown, type Shown } from "./shown";
import { expect, runsOf, watching } from "./stream";
import { isClosed } from "./threads";
import { useLive } from "./use-live";

// The server says within half a second what has changed. Without its word, the page looks after this time.
const SILENCE_MS = 2_000;
// The history of a long conversation holds its messages many times.
const HISTORY_MESSAGES = 2_000;

const NOTHING: Fields = {};
const NO_PARTIALS: Partials = new Map();

interface Server {
  thread: api.Thread;
  /** The newest runs, newest first. */
  runs: Run[];
  history: api.State[];
  /** The version of the thread whose history was read. */
  read: string | null;
  partials: Partials;
}

/** A message of the person, from Enter until its run is over. */
interface Sent {
  message: Fields;
  /** The run that has it, as soon as the server has accepted it. */
  run: string | null;
}

export interface Conversation {
  server: Server | null;
  messages: Shown[];
  values: Fields;
  /** The components of the graph. */
  ui: UiMessage[];
  /** What the run that is busy has written last beside its state. */
  progress: unknown;
  /** The messages of the version that is shown, or of the newest checkpoint, by their ids. What was streamed lacks what a graph adds later. */
  stored: Map<string, Fields>;
  /** The state of the version that is shown, or of the newest checkpoint. */
  storedValues: Fields;
  places: Map<string, Place>;
  /** The states with which runs have ended, as versions of the result of a graph without messages. */
  results: Choice;
  actions: MessageActions;
  questions: api.Interrupt[];
  /** The steps before which the graph has stopped without a question: a breakpoint. */
  pausedBefore: string[];
  /** Runs that wait for others, oldest first. */
  queued: Run[];
  isLoading: boolean;
  isBusy: boolean;
  isReadOnly: boolean;
  problem: unknown;
  say: (text: string, files?: Fields[]) => Promise<boolean>;
  /** Answer questions, by their ids. */
  answer: (answers: Fields) => Promise<boolean>;
  /** Run a graph again that takes no messages. */
  run: (input: api.Input) => Promise<boolean>;
  /** Go on from where the last run has stopped or failed. */
  proceed: () => Promise<boolean>;
  stop: () => void;
  withdraw: (run: Run) => void;
  reconnect: () => void;
}

export function useConversation(threadId: string, graph: string): Conversation {
  const [server, setServer] = useState<Server | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [outbox, setOutbox] = useState<Sent[]>(() => handedTo(threadId));
  const holding = useHolding();
  const [leaf, setLeaf] = useState<string | null>(null);
  const messagesKey = useMemo(() => keyIn(server), [server]);
  const { stream, live, written, follow } = useLive(threadId, graph, messagesKey);
  const { isLoading, isThreadLoading } = stream;
  const latest = useRef({ stream, live, server });
  useEffect(() => {
    latest.current = { stream, live, server };
  });
  // The version of the thread that the hook has read.
  const version = useRef<string | null>(null);

  /** Let the hook follow what it does not show: a run, or what another page has written. */
  const catchUp = useCallback(
    ({ thread, runs }: Server) => {
      const { isLoading, isThreadLoading, error } = latest.current.stream;
      if (isThreadLoading) return;
      const now = versionOf(thread);
      const next = api.activeOf(runs)[0];
      const shown = watching(threadId);
      const isSeen = runs[0]?.status === "success" && runs[0].run_id === shown;
      const isNew = version.current !== null && version.current !== now && !isSeen;
      const isUnseen = next === undefined ? isNew : shown !== next.run_id;
      if (next === undefined) version.current = now;
      if ((isLoading || !isUnseen) && !isLost(error)) return;
      if (next !== undefined) expect(next);
      follow();
    },
    [follow, threadId],
  );

  // Looks at the server may overlap. One that began before the shown one is outdated.
  const looks = useRef({ begun: 0, shown: 0 });
  const look = useCallback(
    async (known?: api.Thread) => {
      const number = ++looks.current.begun;
      try {
        const [first, runs] = await Promise.all([known ?? api.thread(threadId), runsOf(threadId)]);
        const isActive = api.activeOf(runs).length > 0;
        // A run that has ended since the thread was told of has asked other questions.
        const isOlder = !isActive && (first.status === "busy" || isWorking(known));
        const thread = isOlder ? await api.thread(threadId) : first;
        const old = latest.current.server;
        const isRead = old !== null && old.read === versionOf(thread);
        const count = Math.max(1, latest.current.live.length);
        const limit = Math.min(200, Math.ceil(HISTORY_MESSAGES / count));
        const [history, partials] = await Promise.all([
          isActive || isRead ? (old?.history ?? []) : api.history(threadId, limit),
          readPartials(threadId, runs, old?.partials ?? NO_PARTIALS),
        ]);
        if (number < looks.current.shown) return;
        looks.current.shown = number;
        const found = { thread, runs, history, read: isActive ? (old?.read ?? null) : versionOf(thread), partials };
        latest.current.server = found;
        setServer(found);
        setProblem((before: unknown) => (isOffline(before) ? null : before));
        catchUp(found);
      } catch (error) {
        setProblem(error);
      }
    },
    [catchUp, threadId],
  );

  useEffect(() => {
    const first = setTimeout(() => void look(), 0);
    const end = listen({
      onReset: () => void look(),
      onThread: (change) => {
        if (change.thread_id !== threadId) return;
        const old = latest.current.server;
        // A change is not all of a thread.
        if (old === null) {
          void look();
          return;
        }
        const thread: api.Thread = { ...old.thread, ...change };
        if (isNews(old, change)) void look(thread);
        else setServer({ ...old, thread });
      },
      onDeleted: (id) => {
        if (id === threadId) setProblem(new api.ApiError(404, {}, "gone"));
      },
    });
    return () => {
      clearTimeout(first);
      end();
    };
  }, [look, threadId]);

  const active = useMemo(() => api.activeOf(server?.runs ?? []), [server]);
  const isAhead = isLoading !== active.length > 0;
  const hasLost = isLost(stream.error);
  // The hook and the server say something else: one of them has missed a word.
  useEffect(() => {
    if (isThreadLoading || (!isAhead && !hasLost)) return;
    const timer = setTimeout(() => {
      if (latest.current.server !== null && isLoading) follow();
      void look();
    }, SILENCE_MS);
    return () => clearTimeout(timer);
  }, [follow, hasLost, isAhead, isLoading, isThreadLoading, look]);
  // The hook was still busy when the server said what there is.
  useEffect(() => {
    const { server } = latest.current;
    if (!isThreadLoading && !isLoading && server !== null) catchUp(server);
  }, [catchUp, isLoading, isThreadLoading]);

  const isBusy = isLoading || active.length > 0 || outbox.some((each) => each.run === null || server === null);

  const attempt = useCallback(
    async (work: () => Promise<unknown>): Promise<boolean> => {
      setProblem(null);
      try {
        await work();
        return true;
      } catch (error) {
        setProblem(error);
        void look();
        return false;
      }
    },
    [look],
  );

  /** Show a run that the server has just accepted. */
  const begun = useCallback(
    (run: Run) => {
      const old = latest.current.server;
      if (old === null) {
        void look();
        return;
      }
      if (old.runs.some((each) => each.run_id === run.run_id)) return;
      const found = { ...old, runs: [run, ...old.runs] };
      latest.current.server = found;
      setServer(found);
      catchUp(found);
    },
    [catchUp, look],
  );

  const start = useCallback(
    (input: api.Input, from?: string | null): Promise<boolean> =>
      attempt(async () => {
        const messages = messagesOf(input);
        setOutbox((old) => [...old, ...messages.map((message) => ({ message, run: null }))]);
        try {
          const { assistant, context } = settingsOf(latest.current.server?.thread.metadata ?? NOTHING);
          const send = () => api.startRun(threadId, assistant ?? graph, input, from, context);
          const known = () => runWith(threadId, messages);
          const run = await (messages.length === 0 ? send() : holding.hold(send, known, setProblem));
          setProblem(null);
          setOutbox((old) => old.map((each) => (messages.includes(each.message) ? { ...each, run: run.run_id } : each)));
          setLeaf(null);
          begun(run);
        } catch (error) {
          setOutbox((old) => old.filter((each) => !messages.includes(each.message)));
          throw error;
        }
      }),
    [attempt, begun, graph, holding, threadId],
  );

  const questions = useMemo(
    // A run that an answer has made fail does not take another one: its question is asked again first.
    () => (server !== null && !isBusy && leaf === null && server.thread.status !== "error" ? api.questionsOf(server.thread) : []),
    [isBusy, leaf, server],
  );
  const answer = useCallback(
    (answers: Fields) => attempt(() => api.respond(threadId, answers).then(() => look())),
    [attempt, look, threadId],
  );

  // A text that was refused and is sent again is the same message, so that it cannot appear twice.
  const refused = useRef<{ text: string; id: string } | null>(null);
  const say = useCallback(
    async (text: string, files: Fields[] = []): Promise<boolean> => {
      const question = questions[0];
      if (question !== undefined) return answer({ [question.id]: text });
      const id = refused.current?.text === text ? refused.current.id : newId();
      const isAgain = refused.current?.id === id;
      refused.current = null;
      const content = contentOf(text, files);
      if (isAgain && (await runWith(threadId, [{ id }]).catch(() => undefined)) !== undefined) return true;
      const isSent = await start({ [messagesKey]: [{ type: "human", content, id }] }, leaf);
      if (!isSent) refused.current = { text, id };
      return isSent;
    },
    [answer, leaf, messagesKey, questions, start, threadId],
  );

  const history = server?.history;
  const where = useMemo(() => places(history ?? [], leaf), [history, leaf]);
  const results = useMemo(() => resultsOf(history ?? [], leaf), [history, leaf]);
  const branch = leaf === null ? undefined : history?.find((each) => each.checkpoint.checkpoint_id === leaf);
  const stored = useMemo(() => new Map(messagesOf((branch ?? history?.[0])?.values).map((each) => [String(each.id), each])), [branch, history]);
  const actions = useMemo<MessageActions>(
    () => ({
      edit: (id, text) => {
        const message = { type: "human", content: rewritten(stored.get(id)?.content, text), id: newId() };
        return start({ [messagesKey]: [message] }, where.get(id)?.parent);
      },
      repeat: (id) => void start(null, where.get(id)?.parent),
      show: setLeaf,
    }),
    [messagesKey, start, stored, where],
  );

  // What the person has sent and no state has: its run has not begun to write.
  const waiting = useMemo(() => {
    const runs = new Map((server?.runs ?? []).map((run) => [run.run_id, run]));
    const isOver = (run: string | null) => run !== null && runs.has(run) && !active.some((each) => each.run_id === run);
    return outbox.filter((each) => !isOver(each.run)).map((each) => each.message);
  }, [active, outbox, server]);
  const queued = useMemo(() => active.slice(1), [active]);
  const values = branch?.values ?? orNothing(stream.values);
  const newest = active[0] ?? server?.runs[0];
  // The state has all that a run has written which has succeeded.
  const isWriting = branch === undefined && newest?.run_id === written.run && newest?.status !== "success";
  const unstored = isWriting ? written.ui : undefined;
  const ui = useMemo(() => uiOf(values.ui, unstored), [unstored, values.ui]);
  const messages = useMemo(() => {
    if (branch !== undefined) return paired(messagesOf(branch.values).map(shown));
    // When a run has succeeded, its state has what it keeps: what agents have written meanwhile goes.
    const isSettled = stored.size > 0 && active.length === 0 && !isLoading && hasSettled(server);
    const found = isSettled ? live.filter((each) => stored.has(each.id)) : [...live];
    // Messages of the person that no state has yet: of the run that has just begun, or on their way.
    const later = new Set(queued.flatMap(inputOf).map((each) => each.id));
    add(found, active.slice(0, 1).flatMap(inputOf).map(shown));
    add(found, waiting.filter((each) => !later.has(each.id)).map(shown));
    const made = paired(withPartials(found, server?.runs ?? [], server?.partials ?? NO_PARTIALS));
    // A component may come before its message. It stays in its place when the message comes.
    const known = new Set([...messagesOf(values), ...made].map((each) => String(each.id)));
    add(made, awaited(unstored ?? [], known).map((id) => shown({ type: "ai", id }, 0)));
    return made;
  }, [active, branch, isLoading, live, queued, server, stored, unstored, values, waiting]);

  const error = problem ?? (isLost(stream.error) || isBusy ? null : stream.error);
  return {
    server,
    messages,
    values,
    ui,
    progress: isWriting && active.length > 0 ? written.last : undefined,
    stored,
    storedValues: branch?.values ?? history?.[0]?.values ?? NOTHING,
    pausedBefore: isPaused(server) ? (history?.[0]?.next ?? []) : [],
    places: where,
    results,
    actions,
    questions,
    queued,
    isLoading: server === null && messages.length === 0 && error === null,
    isBusy,
    isReadOnly: (server !== null && isClosed(server.thread)) || isLocked(error),
    problem: error ?? null,
    say,
    answer,
    run: (input) => start(input, leaf),
    proceed: () => {
      const isAsked = server?.thread.status === "error" && api.asks(server.thread);
      // From its checkpoint, a run forgets the answer and asks again.
      return start(null, isAsked ? history?.[0]?.checkpoint.checkpoint_id : undefined);
    },
    stop: () =>
      void attempt(async () => {
        // A text that waits for the server goes back into the box.
        holding.giveUp();
        const running = active[0];
        if (running === undefined) return;
        await api.cancel(threadId, running.run_id);
        await look();
      }),
    withdraw: (run) =>
      void attempt(async () => {
        await api.withdraw(threadId, run.run_id);
        setOutbox((old) => old.filter((each) => each.run !== run.run_id));
        await look();
      }),
    reconnect: () => {
      setProblem(null);
      follow();
      void look();
    },
  };
}

/** Return values that a graph of the functional API has none of before its end. */
function orNothing(values: Fields | null): Fields {
  return values ?? NOTHING;
}

/** Return where the state of a thread has its messages. */
function keyIn(server: Server | null): string {
  const known = [server?.history[0]?.values, ...(server?.runs ?? []).map((run) => run.kwargs?.input)];
  return known.map(keyOf).find((key) => key !== null) ?? MESSAGES;
}

/** Return whether the newest run has succeeded, and the state after it is read. */
function hasSettled(server: Server | null): boolean {
  return server !== null && server.runs[0]?.status === "success" && server.read === versionOf(server.thread);
}

/** Return whether a run has ended before the graph's end and asks nothing. One that was stopped has not. */
function isPaused(server: Server | null): boolean {
  const isStopped = server?.runs[0]?.status !== "success";
  return server !== null && server.thread.status === "interrupted" && !isStopped && !api.asks(server.thread);
}

/** Return what is another text after each change of the state. */
function versionOf(thread: api.Thread): string {
  return thread.state_updated_at ?? thread.updated_at;
}

/** Return whether a change is more than that a known run has begun. */
/** Whether a change tells of runs that have not ended. */
function isWorking(known: Partial<Change> | undefined): boolean {
  return (known?.active ?? []).length > 0;
}

function isNews(old: Server, change: Change): boolean {
  const known = api.activeOf(old.runs).map((run) => run.run_id);
  const isSame = known.length === change.active.length && known.every((id) => change.active.includes(id));
  return !isSame || (known.length === 0 && versionOf(old.thread) !== versionOf(change));
}

/** Add the messages to a list that it has not. */
function add(list: Shown[], more: Shown[]): void {
  const ids = new Set(list.map((each) => each.id));
  for (const each of more) {
    if (!ids.has(each.id)) list.push(each);
    ids.add(each.id);
  }
}
