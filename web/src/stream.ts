// The requests of the hook. It only watches: the page starts and cancels runs itself.
import { activeRuns, call, patience, send, type Fields } from "./api";

/** The run that the hook shows, by thread. */
const watched = new Map<string, string>();

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
  const run = (await activeRuns(thread))[0];
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

const LIFECYCLE = new Set<unknown>(["lifecycle", "input"]);

/**
 * Fetch for the hook's streams.
 *
 * - The stream that only watches for the ends of runs stays in the page. Browsers open six connections to
 *   a server of HTTP/1.1, for all tabs together. Its events are in the other stream too.
 * - A stream begins with runs that have just ended. Their events are left out: they would bring back
 *   messages that an edit has replaced.
 */
export async function streamFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const channels = channelsOf(init?.body);
  if (channels.length > 0 && channels.every((each) => LIFECYCLE.has(each))) return silence(init?.signal);
  const answer = await send(input, init);
  const url = new URL(input instanceof Request ? input.url : input.toString());
  const run = watched.get(/\/threads\/([^/]+)\/stream\/events$/.exec(url.pathname)?.[1] ?? "");
  if (run === undefined || !answer.ok || answer.body === null) return answer;
  return new Response(answer.body.pipeThrough(since(run)), { headers: answer.headers });
}

function channelsOf(body: unknown): unknown[] {
  if (typeof body !== "string") return [];
  const found = (JSON.parse(body) as Fields).channels;
  return Array.isArray(found) ? (found as unknown[]) : [];
}

function silence(signal: AbortSignal | null | undefined): Response {
  const stream = new ReadableStream({
    start(controller) {
      signal?.addEventListener("abort", () => controller.error(new DOMException("aborted", "AbortError")));
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

const END = "\n\n";

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
