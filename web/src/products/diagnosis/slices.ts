// Parts of a text that is too long to be shown at once. Offsets are characters, as the server counts them.
import { toUnits } from "../offsets";

/** A part of a text, and the offset of its first character. */
export interface Slice { start: number; end: number; text: string }

export interface Range { start: number; end: number }

/** How many characters are shown at once, and around a place. */
export const PAGE = 20_000;
export const AROUND = 2_500;
/** The most that is marked; what is longer is marked at its beginning. */
const MARKED = 10_000;

/** Return how many characters a text has, as the server counts them. */
export function charsOf(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return count;
}

/** Leave out the lines that begin before a part or end after it, where it has others. */
export function whole({ start, text }: Omit<Slice, "end">, cut: { start: boolean; end: boolean }, kept?: Range): Slice {
  const [from, to] = kept === undefined ? [text.length, 0] : [toUnits(text, kept.start - start), toUnits(text, kept.end - start)];
  const first = cut.start ? text.indexOf("\n") + 1 : 0;
  const begin = first <= from && first < text.length ? first : 0;
  const last = cut.end ? text.lastIndexOf("\n") + 1 : text.length;
  const end = last > begin && last >= to ? last : text.length;
  const at = start + charsOf(text.slice(0, begin));
  const shown = text.slice(begin, end);
  return { start: at, end: at + charsOf(shown), text: shown };
}

/** What to ask the server for, and which of its ends are no ends of lines. */
export interface Wanted extends Range { cut: { start: boolean; end: boolean } }

export function first(chars: number): Wanted {
  const end = Math.min(PAGE, chars);
  return { start: 0, end, cut: { start: false, end: end < chars } };
}

export function last(chars: number): Wanted {
  const start = Math.max(0, chars - PAGE);
  return { start, end: chars, cut: { start: start > 0, end: false } };
}

export function later({ end: start }: Range, chars: number): Wanted {
  const end = Math.min(start + PAGE, chars);
  return { start, end, cut: { start: false, end: end < chars } };
}

export function earlier({ start: end }: Range): Wanted {
  const start = Math.max(0, end - PAGE);
  return { start, end, cut: { start: start > 0, end: false } };
}

/** The part from a place on. */
export function from(place: number, chars: number): Wanted {
  const start = Math.max(0, Math.min(place, chars - PAGE));
  const end = Math.min(start + PAGE, chars);
  return { start, end, cut: { start: start > 0, end: end < chars } };
}

export function around({ start, end }: Range, chars: number): Wanted {
  const begin = Math.max(0, start - AROUND);
  const stop = Math.min(Math.min(end, start + MARKED) + AROUND, Math.max(chars, end));
  return { start: begin, end: stop, cut: { start: begin > 0, end: stop < chars } };
}

/** Return what stands before a place in a part, the place, and what stands after it. */
export function split({ start, text }: Slice, place: Range): [string, string, string] {
  const [a, b] = [toUnits(text, place.start - start), toUnits(text, place.end - start)];
  return [text.slice(0, a), text.slice(a, b), text.slice(b)];
}
