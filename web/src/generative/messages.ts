// `ui` messages: which components a graph wants to be shown, and with what props.
import type { Fields } from "../api";
import { fields } from "../content/block";

export interface UiMessage {
  id: string;
  name: string;
  props: Fields;
  /** The message to which it belongs. */
  messageId: string | undefined;
}

/** What a run has written beside its state. */
export interface Written {
  run: string | undefined;
  /** The newest `ui` message of each id. */
  ui: Fields[];
  /** The newest other event. */
  last: unknown;
}

export const NOTHING_WRITTEN: Written = { run: undefined, ui: [], last: undefined };

/** Add a custom event of a run. What another run has written goes. */
export function withEvent(old: Written, run: string | undefined, event: unknown): Written {
  const found = old.run === run ? old : { ...NOTHING_WRITTEN, run };
  const { type, id, props, metadata } = fields(event);
  if (type !== "ui" && type !== "remove-ui") return { ...found, last: event };
  const known = found.ui.find((each) => each.id === id);
  if (known === undefined) return { ...found, ui: [...found.ui, fields(event)] };
  const isMerged = fields(metadata).merge === true && known.type === "ui";
  const made = isMerged
    ? { ...fields(event), props: { ...fields(known.props), ...fields(props) }, metadata: { ...fields(metadata), merge: fields(known.metadata).merge } }
    : fields(event);
  return { ...found, ui: found.ui.map((each) => (each === known ? made : each)) };
}

/**
 * Return the components that are to be shown.
 *
 * @param stored the field `ui` of the state
 * @param later what the state does not have yet
 */
export function uiOf(stored: unknown, later: Fields[] = []): UiMessage[] {
  const found = new Map<string, UiMessage>();
  for (const each of Array.isArray(stored) ? [...(stored as unknown[]), ...later] : later) apply(found, each);
  return [...found.values()];
}

/** Return the ids of messages to which components belong that a run has written, and that are not there yet. */
export function awaited(later: Fields[], known: ReadonlySet<string>): string[] {
  const ids = later.map((each) => fields(each.metadata).message_id).filter((id): id is string => typeof id === "string");
  return [...new Set(ids)].filter((id) => !known.has(id));
}

/** The place of components that belong to no message. */
export const LOOSE = "";

/**
 * Return the components by the id of the message below which they stand.
 *
 * @param messages of the state: a message that is not shown gives its components to the one before it
 * @param shown the ids of the messages that are shown
 */
export function placed(components: UiMessage[], messages: unknown, shown: ReadonlySet<string>): Map<string, UiMessage[]> {
  const ids = Array.isArray(messages) ? (messages as Fields[]).map((each) => String(each.id)) : [];
  const found = new Map<string, UiMessage[]>();
  for (const each of components) {
    const wanted = each.messageId ?? LOOSE;
    const before = ids.slice(0, ids.indexOf(wanted) + 1).reverse();
    const place = shown.has(wanted) ? wanted : (before.find((id) => shown.has(id)) ?? LOOSE);
    found.set(place, [...(found.get(place) ?? []), each]);
  }
  return found;
}

function apply(found: Map<string, UiMessage>, each: unknown): void {
  const { type, id, name, props, metadata } = fields(each);
  if (typeof id !== "string") return;
  if (type === "remove-ui") found.delete(id);
  if (type !== "ui" || typeof name !== "string") return;
  const { merge, message_id } = fields(metadata);
  const old = found.get(id);
  found.set(id, {
    id,
    name,
    props: merge === true ? { ...old?.props, ...fields(props) } : fields(props),
    messageId: typeof message_id === "string" ? message_id : old?.messageId,
  });
}
