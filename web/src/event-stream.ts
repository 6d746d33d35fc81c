// Follow a stream of server-sent events. `EventSource` cannot send a token.
import * as api from "./api";

export interface ServerEvent { id: string; name: string; data: string }

export type Connection = "open" | "lost" | "refused";

interface Options {
  path: string;
  /** The last event that the caller has. */
  after: string;
  onEvent: (event: ServerEvent) => void;
  onConnection: (connection: Connection, problem?: unknown) => void;
  /** After this time without a sign of the server, the connection is given up. */
  silentMs?: number;
  /** Called when the server ends the stream; true: follow it again. */
  onEnd?: () => boolean;
}

const WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000];
// The server sends a heartbeat each 15 s. A silent socket is half open.
const SILENT_MS = 40_000;

/** Return what reads a text piece by piece, and returns the events that each piece completes. */
export function parser(): (text: string) => ServerEvent[] {
  let rest = "";
  let event: ServerEvent = { id: "", name: "message", data: "" };
  return (text) => {
    const found: ServerEvent[] = [];
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (event.data !== "") found.push(event);
        event = { id: event.id, name: "message", data: "" };
        continue;
      }
      const [, name, value] = /^([^:]*):? ?([\s\S]*)$/.exec(line) ?? [];
      if (name === "id") event.id = value ?? "";
      else if (name === "event") event.name = value ?? "";
      else if (name === "data") event.data += (event.data === "" ? "" : "\n") + (value ?? "");
    }
    return found;
  };
}

/** Read the events of a body. */
export async function* eventsOf(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  const parse = parser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    yield* parse(value);
  }
}

/**
 * Follow a stream, and continue it behind its last event when it breaks. A hidden page has no stream:
 * a browser opens six connections to a server, for all its tabs.
 *
 * @returns a function that ends it.
 */
export function follow({ path, after, silentMs = SILENT_MS, onEvent, onConnection, onEnd }: Options): () => void {
  let last = after;
  let isOver = false;
  let failures = 0;
  let current: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const later = (ms: number) => {
    clearTimeout(timer);
    if (!isOver && !document.hidden) timer = setTimeout(() => void open(), ms);
  };

  const open = async () => {
    const attempt = new AbortController();
    current = attempt;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => attempt.abort(), silentMs);
    };
    try {
      listen();
      const headers = { accept: "text/event-stream", ...(last === "" ? {} : { "last-event-id": last }) };
      const answer = await api.send(api.apiUrl + path, { headers, signal: attempt.signal });
      if (!answer.ok || answer.body === null) {
        throw new api.ApiError(answer.status, {}, `HTTP ${answer.status}`);
      }
      onConnection("open");
      for await (const event of eventsOf(answer.body, listen)) {
        if (isOver) return;
        failures = 0;
        if (event.id !== "") last = event.id;
        onEvent(event);
      }
      if (onEnd?.() === false) return;
      throw new api.ApiError(0, {}, "ended");
    } catch (error) {
      if (isOver || current !== attempt) return;
      const status = error instanceof api.ApiError ? error.status : 0;
      if (status >= 400 && status < 500 && status !== 429) {
        onConnection("refused", error);
        return;
      }
      if (!document.hidden) onConnection("lost", error);
      later(WAITS_MS[Math.min(failures++, WAITS_MS.length - 1)] ?? 0);
    } finally {
      clearTimeout(silence);
      attempt.abort();
    }
  };

  const onVisibility = () => {
    if (document.hidden) {
      clearTimeout(timer);
      const gone = current;
      current = null;
      gone?.abort();
    } else if (current === null || current.signal.aborted) later(0);
  };
  // What was connected before may be half open.
  const onOnline = () => {
    if (document.hidden) return;
    const gone = current;
    current = null;
    gone?.abort();
    later(0);
  };

  document.addEventListener("visibilitychange", onVisibility);
  addEventListener("online", onOnline);
  void open();
  return () => {
    isOver = true;
    clearTimeout(timer);
    current?.abort();
    document.removeEventListener("visibilitychange", onVisibility);
    removeEventListener("online", onOnline);
  };
}
