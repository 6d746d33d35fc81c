// Requests to the server. Every request of the page, also those of the hook, goes through `send`.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Fields = Record<string, unknown>;

export interface Assistant { assistant_id: string; graph_id: string; name: string; description: string | null }
export interface Interrupt { id: string; value: unknown }
export interface Thread {
  thread_id: string;
  status: "idle" | "busy" | "interrupted" | "error";
  updated_at: string;
  metadata: Fields;
  interrupts?: Record<string, Interrupt[]>;
}
export interface Run {
  run_id: string;
  status: string;
  created_at: string;
  metadata: Fields;
  kwargs?: { input?: Fields | null; config?: { configurable?: Fields } };
}
export interface Checkpoint { checkpoint_id: string }
export interface State {
  values: Fields;
  checkpoint: Checkpoint;
  parent_checkpoint: Checkpoint | null;
  created_at: string | null;
  metadata: Fields;
}

/** A refusal of the server, or its absence (status 0). */
export class ApiError extends Error {
  constructor(readonly status: number, readonly body: Fields, message: string) {
    super(message);
  }
}

const TOKEN = "threadhold-token";
const prefix = document.querySelector<HTMLMetaElement>('meta[name="threadhold-api"]')?.content ?? "";
export const apiUrl = location.origin + (prefix.startsWith("__") ? "" : prefix);

export const signedOut = new EventTarget();

export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function signIn(value: string | null): void {
  if (value === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, value);
}

/** Fetch with the user's token. A refused token ends the session. */
export async function send(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const known = token();
  if (known !== null) request.headers.set("authorization", `Bearer ${known}`);
  const answer = await fetch(request);
  if (answer.status === 401) signedOut.dispatchEvent(new Event("signedout"));
  return answer;
}

/**
 * Fetch for the hook. It opens the stream of a thread only if the thread's state has a next step; a
 * thread whose queue holds a run has none between two runs, and would look finished.
 */
export async function hookFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const answer = await send(input, init);
  const url = new URL(input instanceof Request ? input.url : input.toString());
  const thread = /\/threads\/([^/]+)\/state$/.exec(url.pathname)?.[1];
  if (thread === undefined || !answer.ok || (init?.method ?? "GET") !== "GET") return answer;
  const [state, runs] = await Promise.all([answer.json() as Promise<Fields>, activeRuns(thread)]);
  if (runs.length > 0) delete state.next;
  return Response.json(state);
}

export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  let answer: Response;
  try {
    answer = await send(apiUrl + path, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
  } catch {
    throw new ApiError(0, {}, "offline");
  }
  const text = await answer.text();
  if (!answer.ok) throw new ApiError(answer.status, parsed(text), detail(text) ?? `HTTP ${answer.status}`);
  return (text === "" ? null : JSON.parse(text)) as T;
}

function parsed(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

function detail(text: string): string | null {
  const found = parsed(text).detail;
  return typeof found === "string" ? found : null;
}

const FIRST = ["chat", "tutor", "icp_finder", "research", "diagnosis"];

/** Return the assistants of the server, its products first. */
export async function assistants(): Promise<Assistant[]> {
  const found = await call<Assistant[]>("POST", "/assistants/search", {
    limit: 100, metadata: { created_by: "system" },
  });
  const rank = (each: Assistant) => (FIRST.indexOf(each.graph_id) + FIRST.length + 1) % (FIRST.length + 1);
  return found.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

export function label(assistant: string): string {
  const text = assistant.replaceAll("_", " ").replace(/^icp\b/, "ICP");
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

const SHOWN = ["thread_id", "status", "updated_at", "metadata", "interrupts"];

export const threads = (archived: boolean): Promise<Thread[]> =>
  call("POST", "/threads/search", {
    limit: 500,
    sort_by: "updated_at",
    sort_order: "desc",
    select: SHOWN,
    ...(archived ? { include_archived: true } : {}),
  });

export const waiting = (): Promise<Thread[]> =>
  call<Thread[]>("POST", "/threads/search", {
    limit: 100,
    status: "interrupted",
    sort_by: "updated_at",
    sort_order: "desc",
    select: SHOWN,
  }).then((found) => found.filter(asks));

/** Return whether a thread waits for an answer. A run that was forked may end without a question. */
export function asks(thread: Thread): boolean {
  return Object.values(thread.interrupts ?? {}).some((each) => each.length > 0);
}

export const thread = (id: string): Promise<Thread> => call("GET", `/threads/${id}`);

export const createThread = (graph: string, title: string): Promise<Thread> =>
  call("POST", "/threads", { metadata: { graph_id: graph, title } });

export const describe = (id: string, metadata: Fields): Promise<Thread> =>
  call("PATCH", `/threads/${id}`, { metadata });

export const remove = (id: string): Promise<null> => call("DELETE", `/threads/${id}`);

export const runs = (id: string): Promise<Run[]> => call("GET", `/threads/${id}/runs?limit=50`);

/** Return the runs of a thread that are not over, oldest first. */
export async function activeRuns(id: string): Promise<Run[]> {
  const [running, pending] = await Promise.all([
    call<Run[]>("GET", `/threads/${id}/runs?limit=50&status=running`),
    call<Run[]>("GET", `/threads/${id}/runs?limit=50&status=pending`),
  ]);
  return [...running, ...pending.sort((a, b) => a.created_at.localeCompare(b.created_at))];
}

export const enqueue = (id: string, graph: string, body: Fields): Promise<Run> =>
  call("POST", `/threads/${id}/runs`, { assistant_id: graph, multitask_strategy: "enqueue", ...body });

export const cancel = (id: string, run: string): Promise<null> =>
  call("POST", `/threads/${id}/runs/${run}/cancel?wait=true`);

export const history = (id: string): Promise<State[]> =>
  call("POST", `/threads/${id}/history`, { limit: 200 });

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

/** Download a file that needs the token. */
export async function download(path: string, name: string): Promise<void> {
  const answer = await send(apiUrl + path);
  if (!answer.ok) {
    const text = await answer.text();
    throw new ApiError(answer.status, parsed(text), detail(text) ?? `HTTP ${answer.status}`);
  }
  const url = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
