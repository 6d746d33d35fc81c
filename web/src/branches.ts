// The tree of a thread's checkpoints: from where a message can be repeated, and its other versions.
import type { Fields, State } from "./api";

export interface Place {
  /** The checkpoint from which a run replaces the message. */
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
    const before = byId.get(byId.get(id)?.parent_checkpoint?.checkpoint_id ?? "");
    const known = new Set(messagesOf(before).map((message) => message.id));
    const parent = anchor(id, byId);
    const siblings = parent === null ? [id] : starts(parent, byId, children);
    for (const message of messagesOf(byId.get(id))) {
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

type States = Map<string, State>;

function isInput(state: State | undefined): boolean {
  return state?.metadata.source === "input";
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
