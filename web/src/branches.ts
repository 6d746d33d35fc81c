// The tree of a thread's checkpoints: from where a message can be repeated, and its other versions.
import type { State } from "./api";
import { messagesOf } from "./messages-of";

/** Versions of which one is shown. */
export interface Choice {
  /** The newest checkpoint of each version, oldest version first. */
  versions: string[];
  /** The version that is shown. */
  current: number;
}

export interface Place extends Choice {
  /** The checkpoint from which a run replaces the message. */
  parent: string | null;
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
    const before = byId.get(byId.get(id)?.parent_checkpoint?.checkpoint_id ?? "");
    const known = new Set(messagesOf(before?.values).map((message) => message.id));
    const parent = anchor(id, byId);
    const siblings = parent === null ? [id] : starts(parent, byId, children);
    for (const message of messagesOf(byId.get(id)?.values)) {
      if (typeof message.id !== "string" || known.has(message.id) || found.has(message.id)) continue;
      found.set(message.id, {
        parent,
        versions: siblings.map((each) => newest(each, children)),
        current: siblings.indexOf(id),
      });
    }
  }
  return found;
}

/** Return the states with which runs have ended, oldest first, and which of them is shown. */
export function resultsOf(history: State[], leaf: string | null): Choice {
  const versions = history.filter((state) => state.next?.length === 0 && !isInput(state)).map((state) => state.checkpoint.checkpoint_id).reverse();
  const at = leaf === null ? -1 : versions.indexOf(leaf);
  return { versions, current: at < 0 ? versions.length - 1 : at };
}

type States = Map<string, State>;

/** Return whether a run begins with a checkpoint: of its input, or of the place where it has none. */
function isInput(state: State | undefined): boolean {
  return state?.metadata.source === "input" || state?.metadata.source === "fork";
}

/**
 * Return the checkpoint before the step that made `id`. A run begins with a checkpoint of its input;
 * these are passed over, except the first of the thread, which has nothing before it.
 */
function anchor(id: string, byId: States): string | null {
  let at = byId.get(id)?.parent_checkpoint?.checkpoint_id ?? null;
  while (at !== null && isInput(byId.get(at))) {
    const above: string | null = byId.get(at)?.parent_checkpoint?.checkpoint_id ?? null;
    if (above === null) return at;
    at = above;
  }
  return at;
}

/** Return the first checkpoints after `id` that are not of an input, oldest first. */
function starts(id: string, byId: States, children: Map<string, string[]>): string[] {
  return (children.get(id) ?? [])
    .flatMap((each) => (isInput(byId.get(each)) ? starts(each, byId, children) : [each]))
    .sort((a, b) => (byId.get(a)?.created_at ?? "").localeCompare(byId.get(b)?.created_at ?? ""));
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
