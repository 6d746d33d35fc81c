// What an answer says about its sources.
import type { Fields } from "../../api";
import type { Shown } from "../../shown";

export interface Citation {
  number: number;
  title: string;
  section: string;
  /** Position of the passage in the document, from 1. */
  passage: number;
  text: string;
  document_id: string;
  path: string;
  page: number | null;
  start: number;
  end: number;
}

export interface Unsupported { start: number; end: number; text: string }

export interface Notes { citations: Citation[]; unsupported: Unsupported[]; isIncomplete: boolean }

/** Return the notes of an answer. Those of the last one are also in the thread's state. */
export function notesOf(message: Shown, stored: Fields | undefined, values: Fields, isLast: boolean): Notes {
  const extra = { ...message.extra, ...(stored?.additional_kwargs as Fields | undefined) };
  const found = (name: string): unknown[] => {
    const value = extra[name] ?? (isLast ? values[name] : undefined);
    return Array.isArray(value) ? (value as unknown[]) : [];
  };
  return {
    citations: found("citations") as Citation[],
    unsupported: found("unsupported") as Unsupported[],
    isIncomplete: extra.incomplete === true,
  };
}
