// What runs have written that were stopped or failed in the middle of an answer: no state has it.
import * as api from "./api";
import type { Fields, Run } from "./api";
import { inputOf } from "./pending";
import { shown, type Shown } from "./shown";

const OVER = new Set(["interrupted", "error", "timeout"]);
// Older ones are not read.
const LAST = 5;

/** The messages of each run. */
export type Partials = ReadonlyMap<string, Shown[]>;

/** Read what these runs have left, except what is known. A run that is over never changes. */
export async function readPartials(threadId: string, runs: Run[], known: Partials): Promise<Partials> {
  const missing = runs.filter((run) => OVER.has(run.status)).slice(0, LAST).filter((run) => !known.has(run.run_id));
  if (missing.length === 0) return known;
  const found = await Promise.all(missing.map((run) => api.partial(threadId, run.run_id)));
  return new Map([...known, ...missing.map((run, i) => [run.run_id, unfinished(found[i] ?? [])] as const)]);
}

/** The last message of a run is that in which it has ended. */
function unfinished(messages: Fields[]): Shown[] {
  return messages.map((each, i) => ({ ...shown(each, i), isUnfinished: i === messages.length - 1 }));
}

/**
 * Put what runs have left into a conversation: each behind the message that its run has answered. What a run without
 * a message has left is at the end while it is the newest. What was tried again with success is left out.
 */
export function withPartials(messages: Shown[], runs: Run[], partials: Partials): Shown[] {
  const left = new Map<string, Shown[]>();
  const ids = new Set(messages.map((each) => each.id));
  let last: Shown[] = [];
  for (const [i, run] of runs.entries()) {
    const next = runs[i - 1];
    if (next?.status === "success" && next.kwargs?.input == null) continue;
    const more = (partials.get(run.run_id) ?? []).filter((each) => !ids.has(each.id));
    if (more.length === 0) continue;
    const asked: Fields | undefined = inputOf(run).at(-1);
    if (typeof asked?.id === "string" && ids.has(asked.id)) left.set(asked.id, more);
    else if (run === runs[0]) last = more;
  }
  if (left.size === 0 && last.length === 0) return messages;
  return [...messages.flatMap((each) => [each, ...(left.get(each.id) ?? [])]), ...last];
}
