// The answer of `GET /icp_finder/threads/{id}/candidates`, and pure functions of it.

export type Verdict = "rejected" | "kept" | "liked";
export interface Evidence { part: string; found: string; source: string }
export interface Enrichment {
  status: string | null;
  note: string | null;
  about: string | null;
  size: string | null;
  emails: string[];
  phones: string[];
  pages: string[];
}
export interface Candidate {
  key: string;
  name: string;
  industry: string;
  region: string;
  source: string;
  website: string | null;
  score: number;
  parts: Record<string, number>;
  evidence: Evidence[];
  enrichment: Enrichment;
  verdict: Verdict | null;
  reason: string;
}
export interface Job { status: string; done: number; total: number }
export interface Found {
  rule_name: string | null;
  total: number;
  candidates: Candidate[];
  rejected: Candidate[];
  job: Job | null;
}

export type Order = "best" | "name" | "region" | "industry";

/** Sort candidates. "best" is the order of the server, which knows the feedback. */
export function sorted(candidates: Candidate[], order: Order): Candidate[] {
  if (order === "best") return candidates;
  // Empty values come last.
  const value = (each: Candidate) => each[order].toLocaleLowerCase() || "\uffff";
  return [...candidates].sort((a, b) => value(a).localeCompare(value(b)) || b.score - a.score);
}

/** Return the numbers by which commands name candidates: their places in the list that the finder has shown last. */
export function numbersOf(view: unknown): ReadonlyMap<string, number> {
  return new Map(Array.isArray(view) ? view.map((key, i) => [String(key), i + 1]) : []);
}

/** Return the parts of a score, the largest first, each with what proves it. */
export function partsOf(candidate: Candidate): { part: string; value: number; proof: Evidence | undefined }[] {
  return Object.entries(candidate.parts)
    .sort(([, a], [, b]) => b - a)
    .map(([part, value]) => ({ part, value, proof: candidate.evidence.find((each) => each.part === part) }));
}

/** Return a link to a website of a candidate over https, or null if the text names none. */
export function secure(website: string | null): string | null {
  if (website === null) return null;
  try {
    const found = new URL(`https://${website.trim().replace(/^https?:\/\//i, "")}`);
    return found.hostname.includes(".") && found.username === "" ? found.href : null;
  } catch {
    return null;
  }
}

export function hostOf(website: string): string {
  return website.replace(/^https?:\/\//i, "").replace(/^www\./, "").replace(/\/.*$/, "");
}

/** Return whether the background job is under way. */
export function isWorking(job: Job | null): boolean {
  return job !== null && (job.status === "queued" || job.status === "running");
}
