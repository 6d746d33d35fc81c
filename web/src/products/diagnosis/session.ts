// A session, as the server tells it.
import type { Fields } from "../../api";

export interface Evidence {
  direction: "for" | "against";
  observation: string;
  source: string;
  start: number;
  end: number;
  quote: string;
}
export interface Test { outcome: "passed" | "failed" | "unclear"; reason: string; evidence: Evidence[] }
export interface Hypothesis {
  parent: string | null;
  service: string;
  fault: string;
  statement: string;
  by: "rules" | "model";
  tests: Record<string, Test>;
  confidence: number;
  status: "proposed" | "investigating" | "supported" | "refuted";
  seq: number;
}
export interface Source { kind: string; format?: string; name: string; lines: number; chars: number; seq: number }
export interface Entry { seq: number; when: string; kind: string; text: string }
export interface State {
  title: string;
  seq: number;
  sources: Record<string, Source>;
  hypotheses: Record<string, Hypothesis>;
  timeline: Entry[];
  conclusion: { outcome: "cause" | "inconclusive"; hypothesis: string | null; missing: string[] } | null;
  leading: string | null;
}
export interface Event { seq: number; type: string; at: string; data: Fields }
