// Requests to the server. Every request of the page, also those of the hook, goes through `send`.
import type { components } from "./api-types";

type Schemas = components["schemas"];
export type Fields = Record<string, unknown>;
export type Assistant = Schemas["Assistant"] & { name: string };
export type Checkpoint = Schemas["CheckpointConfig"];
export interface Interrupt { id: string; value: unknown }
export type Thread = Omit<Schemas["Thread"], "interrupts"> & {
  interrupts?: Record<string, Interrupt[]>;
};
export type Run = Omit<Schemas["Run"], "kwargs"> & {
  kwargs?: {
    input?: Fields | null;
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
  tasks?: { interrupts?: Interrupt[]; error?: unknown }[];
}

/** A refusal of the server, or its absence (status 0). */
export class ApiError extends Error {
  constructor(readonly status: number, readonly body: Fields, message: string) {
    super(message);
  }
}

// ---- Address and sign-in ----

const TOKEN = "threadhold-token";
const prefix = document.querySelector<HTMLMetaElement>('meta[name="threadhold-api"]')?.content ?? "";
const folder = location.pathname.replace(/\/[^/]*$/, "");

/** The address of the API: where the page is, and the prefix that the server has named. */
export let apiUrl = location.origin + folder + (prefix.startsWith("__") ? "" : prefix);

/** Use the API of another server, for a page that embeds the chat. */
export function setServer(url: string): void {
  apiUrl = url.replace(/\/+$/, "");
}

export const signedOut = new EventTarget();

export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function signIn(value: string | null): void {
  if (value === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, value);
}

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

/** Send a request with a JSON body and return the answer's document. */
export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  let answer: Response;
  try {
    answer = await send(apiUrl + path, {
      method,
      signal: patience(),
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

function refusal(status: number, text: string): ApiError {
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

/** Return the name of a graph for people. */
export function label(graph: string): string {
  const text = graph.replaceAll("_", " ").replace(/^icp\b/, "ICP");
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

// ---- Threads ----

export const PAGE = 500;
const SHOWN: Schemas["ThreadSearchRequest"] = {
  sort_by: "updated_at",
  sort_order: "desc",
  select: ["thread_id", "status", "updated_at", "metadata", "interrupts"],
};

export const threads = (archived: boolean, limit = PAGE): Promise<Thread[]> =>
  call("POST", "/threads/search", { ...SHOWN, limit, ...(archived ? { include_archived: true } : {}) });

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

export const thread = (id: string): Promise<Thread> => call("GET", `/threads/${id}`);

export const createThread = (graph: string, title: string): Promise<Thread> =>
  call("POST", "/threads", { metadata: { graph_id: graph, title } } satisfies Schemas["ThreadCreate"]);

export const describe = (id: string, metadata: Fields): Promise<Thread> =>
  call("PATCH", `/threads/${id}`, { metadata } satisfies Schemas["ThreadPatch"]);

export const remove = (id: string): Promise<null> => call("DELETE", `/threads/${id}`);

export const history = (id: string, limit: number): Promise<State[]> =>
  call("POST", `/threads/${id}/history`, { limit } satisfies Schemas["ThreadStateSearch"]);

// ---- Runs ----

export const runs = (id: string, limit = 50): Promise<Run[]> => call("GET", `/threads/${id}/runs?limit=${limit}`);

/** Return the runs of a thread that are not over, oldest first. */
export async function activeRuns(id: string): Promise<Run[]> {
  const [running, pending] = await Promise.all([
    call<Run[]>("GET", `/threads/${id}/runs?limit=50&status=running`),
    call<Run[]>("GET", `/threads/${id}/runs?limit=50&status=pending`),
  ]);
  return [...running, ...pending.sort((a, b) => a.created_at.localeCompare(b.created_at))];
}

/**
 * Start a run, behind those of the thread that are not over.
 *
 * @param from id of the checkpoint where the run begins; by default the newest
 */
export const startRun = (id: string, graph: string, input: Fields | null, from?: string | null): Promise<Run> =>
  call("POST", `/threads/${id}/runs`, {
    assistant_id: graph,
    input,
    ...(from ? { checkpoint: { checkpoint_id: from } } : {}),
    // Any other strategy would cancel or refuse.
    multitask_strategy: "enqueue",
    stream_resumable: true,
    stream_subgraphs: true,
    // Without it, the stream of the thread has no tokens of this run.
    config: { configurable: { __event_streaming_v2: true } },
  } satisfies Schemas["RunCreateStateful"]);

export const cancel = (id: string, run: string): Promise<null> =>
  call("POST", `/threads/${id}/runs/${run}/cancel?wait=true`);

/** Answer an interrupt. The server refuses an interrupt that no longer waits. */
export async function respond(id: string, interrupt: string, response: unknown): Promise<void> {
  const answer = await call<Fields>("POST", `/threads/${id}/commands`, {
    id: 1,
    method: "input.respond",
    params: { namespace: [], interrupt_id: interrupt, response },
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
