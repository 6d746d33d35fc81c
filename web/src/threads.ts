// What the page says of a thread.
import type { Thread } from "./api";

const LONGEST = 80;

/** Return the title of a conversation that begins with a text. */
export const titled = (text: string): string => text.slice(0, LONGEST);

const TITLES = ["title", "website", "rule_name"];

export function titleOf(thread: Thread): string {
  for (const key of TITLES) {
    const found = thread.metadata[key];
    if (typeof found === "string" && found.trim() !== "") return found;
  }
  return `${graphOf(thread)} ${thread.thread_id.slice(-4)}`.trim();
}

export function graphOf(thread: Thread): string {
  const found = thread.metadata.graph_id;
  return typeof found === "string" ? found : "";
}

export function isArchived(thread: Thread): boolean {
  return thread.metadata.archived === true || thread.metadata.status === "archived";
}

const CLOSED = new Set<unknown>(["locked", "archived", "pending_lock"]);

/** Return whether the thread policy lets nobody write in a thread. */
export function isClosed(thread: Thread): boolean {
  return CLOSED.has(thread.metadata.status);
}
