// The tree of a thread's checkpoints: from where a message can be repeated, and its other versions.
import type { Fields, State } from "./api";

export interface Place {
  /** The checkpoint before the message; a run from there replaces it. */
  parent: string | null;
  /** The newest checkpoint of each version, oldest version first. */
  versions: string[];
  /** The version that is shown. */
  current: number;
}

export function messagesOf(state: State | undefined): Fields[] {
  const found = state?.values.messages;
  return Array.isArray(found) ? (found as Fields[]) : [];
}

/**
 * Find the place of each message on the branch that ends in `leaf`.
 *
 * @param history checkpoints, newest first
 * @param leaf id of a checkpoint; by default the newest
 */
export function places(history: State[], leaf?: string | null): Map<string, Place> {
  const byId = new Map(history.map((state) => [state.checkpoint.checkpoint_id, state]));
  const children = new Map<string, string[]>();
  // Oldest first, so that the versions are in this order.
  for (const state of [...history].reverse()) {
    const parent = state.parent_checkpoint?.checkpoint_id ?? "";
    children.set(parent, [...(children.get(parent) ?? []), state.checkpoint.checkpoint_id]);
  }
  const found = new Map<string, Place>();
  const path: string[] = [];
  let at: string | undefined = leaf ?? history[0]?.checkpoint.checkpoint_id;
  while (at !== undefined && byId.has(at)) {
    path.unshift(at);
    at = byId.get(at)?.parent_checkpoint?.checkpoint_id;
  }
  for (const id of path) {
    const state = byId.get(id);
    const parent = state?.parent_checkpoint?.checkpoint_id ?? null;
    const before = new Set(messagesOf(parent === null ? undefined : byId.get(parent)).map((m) => m.id));
    const siblings = parent === null ? [id] : (children.get(parent) ?? [id]);
    for (const message of messagesOf(state)) {
      if (typeof message.id !== "string" || before.has(message.id) || found.has(message.id)) continue;
      found.set(message.id, {
        parent,
        versions: siblings.map((each) => newest(each, children)),
        current: siblings.indexOf(id),
      });
    }
  }
  return found;
}

/** Return the newest checkpoint that follows `id`. */
function newest(id: string, children: Map<string, string[]>): string {
  let at = id;
  for (;;) {
    const next = children.get(at)?.at(-1);
    if (next === undefined) return at;
    at = next;
  }
}
