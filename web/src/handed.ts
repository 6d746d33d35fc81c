// What a start page hands to the conversation that it has begun, so that nothing has to be read to show it.
import type { Fields } from "./api";

export interface Handed {
  message: Fields;
  /** The run that has it. */
  run: string;
}

const handed = new Map<string, Handed>();

/** Keep the message with which a conversation has begun. */
export function hand(threadId: string, message: Fields, run: string): void {
  handed.set(threadId, { message, run });
}

/** Return the message with which a conversation has begun, if this page has begun it. */
export function handedTo(threadId: string): Handed[] {
  const found = handed.get(threadId);
  return found === undefined ? [] : [found];
}
