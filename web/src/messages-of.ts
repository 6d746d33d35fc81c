// Where the messages of a state or of an input are. Most graphs call them `messages`, some do not.
import type { Fields } from "./api";

export const MESSAGES = "messages";

/** Return the key of the messages of a state or an input, or null if it has none. */
export function keyOf(values: unknown): string | null {
  if (typeof values !== "object" || values === null || Array.isArray(values)) return null;
  if (Array.isArray((values as Fields)[MESSAGES])) return MESSAGES;
  return Object.entries(values).find(([, each]) => Array.isArray(each) && each.length > 0 && each.every(isMessage))?.[0] ?? null;
}

export function messagesOf(values: unknown): Fields[] {
  const key = keyOf(values);
  return key === null ? [] : ((values as Fields)[key] as Fields[]);
}

function isMessage(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { type, role, content } = value as Fields;
  const isContent = typeof content === "string" || Array.isArray(content);
  return isContent && ["human", "ai", "system", "tool", "user", "assistant"].some((each) => each === (type ?? role));
}
