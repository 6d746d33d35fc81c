// Requests about a project, and what the server answers.
import * as api from "../../api";

export const STAGES = ["planning", "searching", "extracting", "analyzing", "reporting"] as const;
export type StageName = (typeof STAGES)[number];

export interface Stage {
  status: "pending" | "running" | "completed" | "failed";
  percentage: number;
  done: number;
  total: number;
}

export type Status =
  | "queued" | "running" | "pausing" | "finishing" | "cancelling" | "paused" | "cancelled" | "failed" | "completed";

export interface Progress {
  project_id: string;
  question: string;
  status: Status;
  current_item: string | null;
  percentage: number;
  eta_seconds: number | null;
  stages: Record<StageName, Stage>;
  usage: Record<string, number>;
  limits: Record<string, number>;
  limits_hit: string[];
  notes: string[];
  error: string | null;
  updated_at: string;
}

export interface Claim { text: string; entries: string[]; origins: number; reason: string }
export interface Entry { id: string; url: string; sha256: string; start: number; end: number; quote: string }
export interface Source { url: string; title: string; published: string | null; crawled: boolean }
export interface Report {
  title: string;
  status: string;
  completed_at: string;
  sections: { title: string; claims: Claim[] }[];
  disagreements: { subject: string; variants: [value: string, date: string, entry: string][] }[];
  unsupported: Claim[];
  ledger: Entry[];
  sources: Source[];
  limits_hit: string[];
  usage: Record<string, number>;
  offline: boolean;
  found_nothing: boolean;
}
export interface Written { report: Report; markdown: string }
export interface PageText { url: string; title: string; text: string; sha256: string; fetched_at: string }

/** Whether something of the project runs or will run. */
export function isActive(status: Status): boolean {
  return ["queued", "running", "pausing", "finishing", "cancelling"].includes(status);
}

/** Start a project. A repeated call with the same id starts nothing again. */
export const start = (id: string, question: string): Promise<Progress> =>
  api.call("POST", "/research", { question, project_id: id });

export const progress = (id: string): Promise<Progress> => api.call("GET", `/research/${id}/progress`);

export type Action = "pause" | "resume" | "finish" | "cancel";

export const act = (id: string, action: Action, limits?: Record<string, number>): Promise<Progress> =>
  api.call("POST", `/research/${id}/${action}`, limits === undefined ? {} : { limits });

/** Return the report; null before there is one. */
export async function report(id: string): Promise<Written | null> {
  try {
    return await api.call<Written>("GET", `/research/${id}/report`);
  } catch (error) {
    if (error instanceof api.ApiError && error.status === 409) return null;
    throw error;
  }
}

export const pages = async (id: string): Promise<PageText[]> =>
  (await api.call<{ pages: PageText[] }>("GET", `/research/${id}/state`)).pages;

/** Return the path of the stream of the project's run; null if none runs. */
export async function streamOf(id: string): Promise<string | null> {
  const run = api.activeOf(await api.runs(id))[0];
  return run === undefined ? null : `/threads/${id}/runs/${run.run_id}/stream?stream_mode=custom`;
}
