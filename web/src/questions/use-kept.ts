// What a person has filled in and the server has not taken yet. It survives a reload and a failed run.
import { useState } from "react";
import { draft, keepDraft } from "../drafts";

const LARGEST = 100_000;

/**
 * A state that is kept in the session storage of the tab.
 *
 * @param place names what is filled in
 */
export function useKept<T>(place: string, first: () => T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => (parsed(draft(place)) as T | null) ?? first());
  return [
    value,
    (next) => {
      setValue(next);
      const text = JSON.stringify(next);
      keepDraft(place, text.length > LARGEST ? "" : text);
    },
  ];
}

function parsed(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Return a name for a question, which has another id when it is asked again. */
export function placeOf(thread: string, value: unknown): string {
  let hash = 0;
  for (const char of JSON.stringify([value])) hash = (Math.imul(hash, 31) + (char.codePointAt(0) ?? 0)) | 0;
  return `answer:${thread}:${hash}`;
}
