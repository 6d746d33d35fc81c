// A quote in the text that it was taken from.
import { useEffect, useRef } from "react";
import { toUnits } from "./offsets";

const AROUND = 600;

/** A part of a text, with offsets in characters as Python counts them. */
export interface Excerpted { text: string; start: number; end: number }

/** Return what stands before a quote, the quote, and what stands after it. */
export function around({ text, start, end }: Excerpted, most = AROUND): [string, string, string] {
  const [from, to] = [toUnits(text, start), toUnits(text, end)];
  const first = Math.max(0, from - most);
  const last = Math.min(text.length, to + most);
  return [
    (first > 0 ? "… " : "") + text.slice(first, from),
    text.slice(from, to),
    text.slice(to, last) + (last < text.length ? " …" : ""),
  ];
}

export function Excerpt(props: Excerpted) {
  const mark = useRef<HTMLElement>(null);
  const [before, quote, after] = around(props);
  useEffect(() => mark.current?.scrollIntoView({ block: "nearest" }), []);
  return <blockquote className="excerpt">{before}<mark ref={mark}>{quote}</mark>{after}</blockquote>;
}
