// Requests of the ICP finder's page.
import * as api from "../../api";
import type { Found, Verdict } from "./candidate";

const base = (thread: string) => `/icp_finder/threads/${thread}`;

export const candidates = (thread: string): Promise<Found> => api.call("GET", `${base(thread)}/candidates`);

export const feedback = (thread: string, key: string, verdict: Verdict | null): Promise<Found> =>
  api.call("POST", `${base(thread)}/feedback`, { key, verdict });

export const exportScores = (thread: string): Promise<void> =>
  api.download(`${base(thread)}/scores.csv`, `candidates-${thread.slice(-4)}.csv`);

/** What the page says in a new thread, so that the finder begins. */
export const GREETING = "Hello";

/** Open a thread for a website. It makes the person's earlier one read-only, which then leads to it. */
export const openFresh = async (agent: string, website: string): Promise<string> => {
  const found = await api.resolve(agent, website);
  if (found.action === "create" && found.thread_id !== undefined) return found.thread_id;
  const earlier = found.thread_id ?? found.candidates?.[0]?.thread_id;
  const metadata = { agent, ...(website === "" ? {} : { website }), resumed_from: earlier };
  return (await api.call<api.Thread>("POST", "/threads", { metadata })).thread_id;
};

/** Open the session that a question proposes. */
export const openSession = async (request: { method: string; path: string; body: unknown }): Promise<string> =>
  (await api.call<{ thread_id: string }>("POST", request.path, request.body)).thread_id;
