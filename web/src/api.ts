// Requests to the server. Every request of the page, also those of the hook, goes through `send`.
import type { components } from "./api-types";
import { label } from "./names";
import { token } from "./token";

type Schemas = components["schemas"];
export type Fields = Record<string, unknown>;
export type Assistant = Schemas["Assistant"] & { name: string };
export type Checkpoint = Schemas["CheckpointConfig"];
export interface Interrupt { id: string; value: unknown; response_schema?: unknown }
/** What a graph takes: mostly an object, in the functional API any value. */
export type Input = NonNullable<Schemas["RunCreateStateful"]["input"]> | null;
/** What the page reads of a thread. */
export type Thread = Pick<
  Schemas["Thread"], "thread_id" | "status" | "updated_at" | "state_updated_at" | "metadata"
> & { created_at?: string; interrupts?: Record<string, Interrupt[]> };
export type Run = Omit<Schemas["Run"], "kwargs"> & {
  kwargs?: {
    input?: unknown;
    command?: { resume?: unknown } | null;
    config?: { configurable?: Fields };
  };
};
export interface State {
  values: Fields;
  checkpoint: { checkpoint_id: string };
  parent_checkpoint: { checkpoint_id: string } | null;
  created_at: string | null;
  metadata: Fields;
  /** The steps that come next. */
  next?: string[];
  tasks?: { interrupts?: Interrupt[]; error?: unknown }[];
}

/** A refusal of the server, or its absence (status 0). */
export class ApiError extends Error {
  constructor(readonly status: number, readonly body: Fields, message: string) {
    super(message);
  }
}

// ---- Address and sign-in ----

const prefix = document.querySelector<HTMLMetaElement>('meta[name="threadhold-api"]')?.content ?? "";
const folder = location.pathname.replace(/\/[^/]*$/, "");

/** The address of the API: where the page is, and the prefix that the server has named. */
export let apiUrl = location.origin + folder + (prefix.startsWith("__") ? "" : prefix);

/** Use the API of another server, for a page that embeds the chat. */
export function setServer(url: string): void {
  apiUrl = url.replace(/\/+$/, "");
}

export const signedOut = new EventTarget();

// ---- Requests ----

/** Fetch with the user's token. A refused token ends the session. */
export async function send(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const known = token();
  if (known !== null) request.headers.set("authorization", `Bearer ${known}`);
  const answer = await fetch(request);
  if (answer.status === 401) signedOut.dispatchEvent(new Event("signedout"));
  return answer;
}

// A socket may be half open: what is sent is lost, and no error arrives.
const PATIENCE_MS = 10_000;

/** Return a signal that aborts a request to which no answer comes. */
export function patience(signal?: AbortSignal | null): AbortSignal {
  const late = AbortSignal.timeout(PATIENCE_MS);
  return signal ? AbortSignal.any([signal, late]) : late;
}

/**
 * Send a request with a JSON body and return the answer's document.
 *
 * @param signal aborts it; by default when no answer comes in time
 */
export async function call<T>(method: string, path: string, body?: unknown, signal = patience()): Promise<T> {
  let answer: Response;
  try {
    answer = await send(apiUrl + path, {
      method,
      signal,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
  } catch {
    throw new ApiError(0, {}, "offline");
  }
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer.status, text);
  return (text === "" ? null : JSON.parse(text)) as T;
}

export function refusal(status: number, text: string): ApiError {
  const body = parsed(text);
  return new ApiError(status, body, typeof body.detail === "string" ? body.detail : `HTTP ${status}`);
}

function parsed(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

/** Download a file that needs the token. */
export async function download(path: string, name: string): Promise<void> {
  const answer = await send(apiUrl + path);
  if (!answer.ok) throw refusal(answer.status, await answer.text());
  const url = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** The user, as the server's authentication names them; null without any. */
export interface Caller {
  identity: string | null;
  display_name: string | null;
  tenant: string | null;
}

export const me = (): Promise<Caller> => call("GET", "/me");

// ---- Assistants ----

const FIRST = ["chat", "tutor", "icp_finder", "research", "diagnosis"];

/** Return the assistants of the server, its products first. */
export async function assistants(): Promise<Assistant[]> {
  const found = await call<Assistant[]>("POST", "/assistants/search", {
    limit: 100,
    metadata: { created_by: "system" },
  } satisfies Schemas["AssistantSearchRequest"]);
  const rank = (each: Assistant) => {
    const place = FIRST.indexOf(each.graph_id);
    return place < 0 ? FIRST.length : place;
  };
  return found.sort((a, b) => rank(a) - rank(b) || label(a.graph_id).localeCompare(label(b.graph_id)));
}

export { label };

// ---- Threads ----

export const PAGE = 500;
const SHOWN: Schemas["ThreadSearchRequest"] = {
  sort_by: "updated_at",
  sort_order: "desc",
  select: ["thread_id", "status", "created_at", "updated_at", "state_updated_at", "metadata", "interrupts"],
};

export const threads = (archived: boolean, limit = PAGE): Promise<Thread[]> =>
  call("POST", "/threads/search", { ...SHOWN, limit, ...(archived ? { include_archived: true } : {}) });

/** A thread that has the words that were looked for, and what it says around them. */
export interface Found extends Thread {
  excerpt: string | null;
}

/** Return the newest threads whose title or state has all words of a text. */
export const find = (text: string): Promise<Found[]> =>
  call<{ threads: Found[] }>("GET", `/threads/find?text=${encodeURIComponent(text)}`).then(({ threads }) => threads);

/** Return the threads that wait for an answer. */
export const waiting = (): Promise<Thread[]> =>
  call<Thread[]>("POST", "/threads/search", { ...SHOWN, limit: 100, status: "interrupted" }).then(
    (found) => found.filter(asks),
  );

export function questionsOf(thread: Thread): Interrupt[] {
  return Object.values(thread.interrupts ?? {}).flat();
}

/** Return whether a thread waits for an answer. A run that was stopped leaves no question. */
export function asks(thread: Thread): boolean {
  return questionsOf(thread).length > 0;
}

/** Return a thread without its values, which may be long. */
export async function thread(id: string): Promise<Thread> {
  const [found] = await call<Thread[]>("POST", "/threads/search", { ...SHOWN, ids: [id], limit: 1, include_archived: true });
  if (found === undefined) throw new ApiError(404, {}, "gone");
  return found;
}

/** Create a thread. With the same id, a second attempt gives the same one. */
export const createThread = (id: string, graph: string, title: string, more: Fields = {}): Promise<Thread> =>
  call("POST", "/threads", {
    thread_id: id,
    if_exists: "do_nothing",
    metadata: { graph_id: graph, title, ...more },
  } satisfies Schemas["ThreadCreate"]);

export const describe = (id: string, metadata: Fields): Promise<Thread> =>
  call("PATCH", `/threads/${id}`, { metadata } satisfies Schemas["ThreadPatch"]);

export const remove = (id: string): Promise<null> => call("DELETE", `/threads/${id}`);

export const history = (id: string, limit: number): Promise<State[]> =>
  call("POST", `/threads/${id}/history`, { limit } satisfies Schemas["ThreadStateSearch"]);

// ---- Runs ----

export const runs = (id: string, limit = 50): Promise<Run[]> => call("GET", `/threads/${id}/runs?limit=${limit}`);

/** Return the runs that are not over, oldest first, of those of a thread. */
export function activeOf(found: Run[]): Run[] {
  return found
    .filter((run) => run.status === "running" || run.status === "pending")
    .sort((a, b) => a.created_at.localeCompare(b.created_at));
}

/** Return the messages that a stopped or failed run has streamed and no state has. */
export const partial = (id: string, run: string): Promise<Fields[]> =>
  call<{ messages: Fields[] }>("GET", `/threads/${id}/runs/${run}/partial`).then((found) => found.messages);

/**
 * Start a run, behind those of the thread that are not over.
 *
 * @param graph name of the graph, or id of an assistant
 * @param from id of the checkpoint where the run begins; by default the newest
 * @param context what the run gets beside its input; by default that of the assistant
 */
export const startRun = (
  id: string, graph: string, input: Input, from?: string | null, context?: Fields,
): Promise<Run> =>
  call("POST", `/threads/${id}/runs`, {
    assistant_id: graph,
    input,
    ...(from ? { checkpoint: { checkpoint_id: from } } : {}),
    // Any other strategy would cancel or refuse.
    multitask_strategy: "enqueue",
    stream_resumable: true,
    stream_subgraphs: true,
    // Without the flag, the stream of the thread has no tokens of this run. The server takes no context beside
    // it, and makes the context of what is configurable.
    config: { configurable: { ...context, __event_streaming_v2: true } },
  } satisfies Schemas["RunCreateStateful"]);

export const cancel = (id: string, run: string): Promise<null> =>
  call("POST", `/threads/${id}/runs/${run}/cancel?wait=true`);

/** Take back a run that has not begun: nothing of it stays. */
export const withdraw = (id: string, run: string): Promise<null> =>
  call("POST", `/threads/${id}/runs/${run}/cancel?wait=true&action=rollback`);

/** Answer interrupts, by their ids. The server refuses one that no longer waits. */
export async function respond(id: string, answers: Fields): Promise<void> {
  const answer = await call<Fields>("POST", `/threads/${id}/commands`, {
    id: 1,
    method: "input.respond",
    params: {
      responses: Object.entries(answers).map(([interrupt_id, response]) => ({ namespace: [], interrupt_id, response })),
    },
  } satisfies Schemas["ProtocolCommand"]);
  if (answer.type !== "error") return;
  const text = String(answer.message);
  const status = Number(/^(\d{3}): /.exec(text)?.[1] ?? 422);
  throw new ApiError(status, { ...parsed(text.slice(5)), error: answer.error }, text);
}

// ---- Products ----

export interface Resolution {
  action: "create" | "resume" | "choose";
  thread_id?: string;
  candidates?: Fields[];
  message?: string;
}

export const resolve = (agent: string, website: string): Promise<Resolution> =>
  call("POST", "/threads/resolve", { agent, ...(website === "" ? {} : { website }) });

export const resume = (id: string, context: Fields = {}): Promise<Resolution> =>
  call("POST", `/threads/${id}/resume`, context);

export const summary = (id: string): Promise<Fields> => call("GET", `/tutor/threads/${id}/summary`);
