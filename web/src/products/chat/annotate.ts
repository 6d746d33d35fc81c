// In an answer, marks such as `[2]` become buttons, and sentences without a source are marked.
import type { Element, ElementContent, Root, Text } from "hast";
import { toUnits } from "../offsets";
import type { Plugins } from "../../markdown";
import type { Notes } from "./citation";

interface Span { start: number; end: number }

const MARK = /\[(\d{1,12}(?:\s*[,;]\s*\d{1,12})*)\]/g;
const LEFT_ALONE = new Set(["code", "pre", "a", "button"]);

/** Return the plugins that annotate an answer, for `Text`. */
export function annotate(text: string, notes: Notes, wording: { source: string }): Plugins {
  const known = new Set(notes.citations.map((each) => each.number));
  const spans = notes.unsupported.map(({ start, end }) => ({ start: toUnits(text, start), end: toUnits(text, end) }));
  return {
    concern: (block, base) =>
      block.search(MARK) >= 0 || spans.some(({ start, end }) => start < base + block.length && end > base),
    of: (base) => [() => (tree: Root) => walk(tree, (node) => parts(node, base, known, spans, wording.source))],
  };
}

function walk(parent: Root | Element, change: (node: Text) => ElementContent[]): void {
  parent.children = (parent.children as ElementContent[]).flatMap((child) => {
    if (child.type === "text") return change(child);
    if (child.type === "element" && !LEFT_ALONE.has(child.tagName)) walk(child, change);
    return [child];
  });
}

function parts(node: Text, base: number, known: Set<number>, spans: Span[], source: string): ElementContent[] {
  const start = base + (node.position?.start.offset ?? 0);
  const made: ElementContent[] = [];
  let last = 0;
  for (const found of node.value.matchAll(MARK)) {
    const numbers = (found[1] ?? "").split(/\s*[,;]\s*/).map(Number);
    if (!numbers.every((each) => known.has(each))) continue;
    made.push(...marked(node.value.slice(last, found.index), start + last, spans));
    made.push(...numbers.map((each) => button(each, source)));
    last = found.index + found[0].length;
  }
  return [...made, ...marked(node.value.slice(last), start + last, spans)];
}

function marked(value: string, start: number, spans: Span[]): ElementContent[] {
  const made: ElementContent[] = [];
  let last = 0;
  for (const span of spans) {
    const from = Math.max(last, span.start - start);
    const to = Math.min(value.length, span.end - start);
    if (from >= to || value.slice(from, to).trim() === "") continue;
    made.push(text(value.slice(last, from)), {
      type: "element", tagName: "mark", properties: { className: ["unsupported"] },
      children: [text(value.slice(from, to))],
    });
    last = to;
  }
  return [...made, text(value.slice(last))].filter((each) => each.type !== "text" || each.value !== "");
}

function button(number: number, source: string): Element {
  return {
    type: "element", tagName: "button",
    properties: { type: "button", className: ["cite"], dataCite: number, ariaLabel: `${source} ${number}` },
    children: [text(String(number))],
  };
}

function text(value: string): Text {
  return { type: "text", value };
}
