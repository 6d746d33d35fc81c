// What the server says of two moments, as the page tells it.
import type { Hypothesis, Source, State, Test } from "./session";
import { w } from "./words";

interface Pair<T> { before: T; after: T }
interface Named<T> {
  added: Record<string, T>;
  removed: Record<string, T>;
  changed: Record<string, Record<string, unknown>>;
}
export type Conclusion = State["conclusion"];

export interface Diff {
  /** How many events of a type came. */
  events: Record<string, number>;
  conclusion?: Pair<Conclusion>;
  sources: Named<Source>;
  observations: Named<{ quote: string }>;
  hypotheses: Named<Hypothesis>;
  notes: { seq: number; author: string; text: string }[];
}

type Both<T> = [T | undefined, T | undefined];

export interface CauseChange {
  id: string;
  change: "added" | "removed" | "changed";
  statement: string;
  confidence: Both<number>;
  status: Both<string>;
  /** The results of the tests that differ. */
  tests: { name: string; before: string | undefined; after: string | undefined }[];
}

/** Return what became of the causes, the most likely first. */
export function causesOf({ hypotheses }: Diff, before: State, after: State): CauseChange[] {
  const changes = (["added", "changed", "removed"] as const).flatMap((change) =>
    Object.keys(hypotheses[change]).map((id): CauseChange => {
      const [old, now] = [before.hypotheses[id], after.hypotheses[id]];
      return {
        id,
        change,
        statement: (now ?? old)?.statement ?? id,
        confidence: [old?.confidence, now?.confidence],
        status: [old?.status, now?.status],
        tests: change === "removed" ? [] : testsOf(old?.tests ?? {}, now?.tests ?? {}),
      };
    }),
  );
  const share = ({ confidence: [old, now] }: CauseChange) => now ?? old ?? 0;
  return changes.sort((a, b) => share(b) - share(a));
}

function testsOf(before: Record<string, Test>, after: Record<string, Test>): CauseChange["tests"] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((name) => ({ name, before: before[name]?.outcome, after: after[name]?.outcome }))
    .filter((each) => each.before !== each.after);
}

/** Say how an investigation stands. */
export function concluded(conclusion: Conclusion, state: State): string {
  if (conclusion === null) return w("open");
  const cause = conclusion.hypothesis === null ? undefined : state.hypotheses[conclusion.hypothesis];
  return cause === undefined ? w("inconclusive") : `${w("found")}: ${cause.statement}`;
}
