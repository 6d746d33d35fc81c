// What the page says of a thread.
import type { Thread } from "./api";
import { moment } from "./i18n";

const LONGEST = 80;

/** Return the title of a conversation that begins with a text. */
export const titled = (text: string): string => text.slice(0, LONGEST);

// What a session is about: several have the same.
const SUBJECTS = ["website", "rule_name"];

export interface Heading {
  name: string;
  /** When it has begun, if that tells it from others of the same name. */
  begun: string;
}

/** Return the title of a conversation in two parts, the second of which may be empty. */
export function headingOf(thread: Thread): Heading {
  const text = (key: string) => (typeof thread.metadata[key] === "string" ? thread.metadata[key].trim() : "");
  if (text("title") !== "") return { name: text("title"), begun: "" };
  const subject = SUBJECTS.map(text).find((each) => each !== "");
  if (subject === undefined) return { name: `${graphOf(thread)} ${thread.thread_id.slice(-4)}`.trim(), begun: "" };
  const begun = thread.created_at === undefined ? "" : moment(thread.created_at);
  return { name: subject.replace(/^https?:\/\/|\/$/gi, ""), begun };
}

export function titleOf(thread: Thread): string {
  const { name, begun } = headingOf(thread);
  return begun === "" ? name : `${name} · ${begun}`;
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
