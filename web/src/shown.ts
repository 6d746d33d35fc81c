// A message as it is shown, from the hook or from a checkpoint.
import type { Fields } from "./api";

export interface Shown {
  id: string;
  role: "human" | "ai" | "other";
  text: string;
  /** Kinds of the parts that are not text, such as `image`. */
  parts: string[];
  extra: Fields;
}

interface MessageLike {
  id?: string | undefined;
  type?: unknown;
  content?: unknown;
  getType?: () => string;
  additional_kwargs?: unknown;
}

const known = new WeakMap<object, Shown>();

/** Read a message of the hook, or one of a checkpoint. The same message gives the same object. */
export function shown(message: MessageLike | Fields, index: number): Shown {
  const found = message as MessageLike;
  const old = known.get(found);
  if (old !== undefined) return old;
  const type = found.getType?.() ?? String(found.type);
  const parts = Array.isArray(found.content) ? (found.content as (string | Fields)[]) : [];
  const made: Shown = {
    id: found.id ?? `#${index}`,
    role: type === "human" ? "human" : type === "ai" ? "ai" : "other",
    text: textOf(found.content),
    parts: parts.flatMap((part) => (typeof part !== "string" && part.type !== "text" ? [String(part.type)] : [])),
    extra: (found.additional_kwargs ?? {}) as Fields,
  };
  known.set(found, made);
  return made;
}

export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as (string | Fields)[])
    .map((part) => (typeof part === "string" ? part : typeof part.text === "string" ? part.text : ""))
    .join("");
}

/** Return whether there is something to show of a message. Calls of tools have no text. */
export function isVisible(message: Shown): boolean {
  return message.role !== "other" && (message.text.trim() !== "" || (message.role === "human" && message.parts.length > 0));
}
