// The requests of the hook. It only watches: the page starts and cancels runs itself.
import { activeOf, call, patience, runs, send, type Fields, type Run } from "./api";
import { parser } from "./event-stream";

/** The run that the hook shows, by thread. */
const watched = new Map<string, string>();

/** Return the run that the hook shows, or has shown last. */
export const watching = (thread: string): string | undefined => watched.get(thread);

const started = new Map<string, Run>();

/** Say which run of a thread the hook is to follow, when it reads the thread next. */
export function expect(run: Run): void {
  started.set(run.thread_id, run);
  watched.set(run.thread_id, run.run_id);
}

const reading = new Map<string, Promise<Run[]>>();

/** Read the runs of a thread. The hook, if it asks meanwhile, takes the same answer. */
export function runsOf(thread: string): Promise<Run[]> {
  const read = runs(thread);
  reading.set(thread, read);
  const forget = () => {
    if (reading.get(thread) === read) reading.delete(thread);
  };
  read.then(forget, forget);
  return read;
}

/**
 * Fetch for the hook's requests that are not streams.
 *
 * - The hook opens the stream of a thread only if its state has a next step. A thread whose queue holds a
 *   run has none between two runs. A thread at rest may have one, and its state says all there is.
 * - A fork has steps with lower numbers than the state before it, which the hook would take for old ones,
 *   so it gets the state where the fork begins.
 * - The hook asks for the history to find sub-graphs, which the page does not show.
 */
export async function stateFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input.toString());
  if (url.pathname.endsWith("/history")) return Response.json([]);
  const thread = /\/threads\/([^/]+)\/state$/.exec(url.pathname)?.[1];
  if (thread === undefined) return send(input, init);
  // The state is read last. Of a run that ends in between, it has everything.
  const run = started.get(thread) ?? activeOf(await (reading.get(thread) ?? runsOf(thread)))[0];
  started.delete(thread);
  const answer = await send(input, { ...init, signal: patience(init?.signal) });
  if (!answer.ok) return answer;
  const state = (await answer.json()) as Fields;
  if (run === undefined) return Response.json({ ...state, next: [], tasks: [] });
  watched.set(thread, run.run_id);
  const from = run.kwargs?.config?.configurable?.checkpoint_id;
  const hasBegun = (state.metadata as Fields | undefined)?.run_id === run.run_id;
  const begin =
    typeof from === "string" && !hasBegun ? await call<Fields>("GET", `/threads/${thread}/state/${from}`) : state;
  return Response.json({ ...begin, next: undefined });
}

type Listener = (run: string | undefined, event: unknown) => void;

const listeners = new Map<string, Listener>();

/** Hear what the nodes of a thread's run write, in the stream of the hook. Return a function that ends it. */
export function hear(thread: string, listener: Listener): () => void {
  listeners.set(thread, listener);
  return () => {
    if (listeners.get(thread) === listener) listeners.delete(thread);
  };
}

const LIFECYCLE = new Set<unknown>(["lifecycle", "input"]);

/**
 * Fetch for the hook's streams.
 *
 * - The stream that only watches for the ends of runs stays in the page. Browsers open six connections to
 *   a server of HTTP/1.1, for all tabs together. Its events are in the other stream too.
 * - A stream begins with runs that have just ended. Their events are left out: they would bring back
 *   messages that an edit has replaced.
 * - It has what nodes write, which the hook does not ask for, if somebody hears it.
 */
export async function streamFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const asked = typeof init?.body === "string" ? (JSON.parse(init.body) as Fields) : {};
  const channels = Array.isArray(asked.channels) ? (asked.channels as unknown[]) : [];
  if (channels.length > 0 && channels.every((each) => LIFECYCLE.has(each))) return silence(init?.signal);
  const url = new URL(input instanceof Request ? input.url : input.toString());
  const thread = /\/threads\/([^/]+)\/stream\/events$/.exec(url.pathname)?.[1];
  if (thread === undefined) return send(input, init);
  const isHeard = listeners.has(thread);
  const answer = await send(
    input,
    isHeard ? { ...init, body: JSON.stringify({ ...asked, channels: [...channels, "custom"] }) } : init,
  );
  if (!answer.ok || answer.body === null) return answer;
  const run = watched.get(thread);
  const all = answer.body.pipeThrough(paced());
  const body = run === undefined ? all : all.pipeThrough(since(run));
  const tell = (event: unknown) => listeners.get(thread)?.(watched.get(thread), event);
  return new Response(isHeard ? body.pipeThrough(overheard(tell)) : body, { headers: answer.headers });
}

function silence(signal: AbortSignal | null | undefined): Response {
  const stream = new ReadableStream({
    start(controller) {
      signal?.addEventListener("abort", () => controller.error(new DOMException("aborted", "AbortError")));
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

const PART = 4_096;

/** Pass a burst on in parts, with other tasks between them: what reads it handles each part in one task. */
export function paced(): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  // Unlike timers, messages are not slower in a hidden tab.
  const { port1, port2 } = new MessageChannel();
  const task = () =>
    new Promise<void>((resolve) => {
      port1.onmessage = () => resolve();
      port2.postMessage(null);
    });
  return new TransformStream({
    async transform(chunk, controller) {
      for (let at = 0; at < chunk.length; at += PART) {
        controller.enqueue(chunk.subarray(at, at + PART));
        await task();
      }
    },
    flush: () => port1.close(),
  });
}

const END = "\n\n";

/** Tell what nodes write, and let all events pass. */
export function overheard(tell: (event: unknown) => void): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder();
  const parse = parser();
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      for (const { name, data } of parse(decoder.decode(chunk, { stream: true }))) {
        if (name === "custom") tell((JSON.parse(data) as { params: { data: { payload: unknown } } }).params.data.payload);
      }
    },
  });
}

/** Leave out server-sent events before the first of a run. Comments, which keep the stream alive, stay. */
export function since(run: string): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const begin = `"synth:${run}:`;
  let waiting = "";
  let hasBegun = false;
  return new TransformStream({
    transform(chunk, controller) {
      if (hasBegun) {
        controller.enqueue(chunk);
        return;
      }
      waiting += decoder.decode(chunk, { stream: true }).replaceAll("\r\n", "\n");
      let at = waiting.indexOf(END);
      while (at >= 0 && !hasBegun) {
        const event = waiting.slice(0, at + END.length);
        hasBegun = event.includes(begin);
        if (!hasBegun) {
          if (event.startsWith(":")) controller.enqueue(encoder.encode(event));
          waiting = waiting.slice(at + END.length);
          at = waiting.indexOf(END);
        }
      }
      if (hasBegun) controller.enqueue(encoder.encode(waiting));
    },
  });
}
