// A Markdown text in blocks: of a growing text, only the last ones change.
import { Lexer, Marked, type Token } from "marked";

export interface Cut {
  text: string;
  blocks: string[];
}

const FORMULA = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/;
const DETAILS = 20_000;
const NOTE = /^ {0,3}\[\^([^\]\s]{1,80})\]:/;

// A formula may have empty lines, and lines that look like lists.
const { defaults } = new Marked({
  extensions: [{
    name: "formula",
    level: "block",
    // Where it ends a paragraph, which has no empty line.
    start: (text: string) => /(?<=\n) {0,3}(?:\$\$|\\\[)/.exec(text.slice(0, text.search(/\n[ \t]*\n|$(?![\s\S])/)))?.index,
    tokenizer: (text: string) => {
      const found = FORMULA.exec(text);
      return found === null ? undefined : { type: "formula", raw: found[0] };
    },
  }],
});

/**
 * Cut a text into blocks. Of a text that has changed since `old`, only what follows the blocks that are the same is
 * cut again: it can change the last block, and what looks like the one before it, but no earlier ones.
 */
export function cut(text: string, old: Cut | null): Cut {
  let begin = 0;
  const same = (old?.blocks ?? []).findIndex((block) => {
    const isSame = text.startsWith(block, begin);
    if (isSame) begin += block.length;
    return !isSame;
  });
  const known = old?.blocks.slice(0, same < 0 ? undefined : same).slice(0, -2) ?? [];
  const rest = text.slice(known.join("").length);
  return { text, blocks: [...known, ...joined(new Lexer(defaults).blockTokens(rest, []))] };
}

/** Join what belongs together: from `<details>` to its end, and the paragraphs of a footnote. */
function joined(tokens: Token[]): string[] {
  const blocks: string[] = [];
  let depth = 0;
  for (const { type, raw } of tokens) {
    const last = blocks.at(-1) ?? "";
    const isInside = depth > 0 && last.length < DETAILS;
    const isOfNote = type === "code" && /^(?: {4}|\t)/.test(raw) && NOTE.test(last);
    if (type === "html") depth = Math.max(0, depth + count(raw, /<details\b/gi) - count(raw, /<\/details\b/gi));
    // Empty lines go with what is before them.
    if (last !== "" && (isInside || isOfNote || type === "space")) blocks.splice(-1, 1, last + raw);
    else blocks.push(raw);
  }
  return blocks;
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

export interface Fence {
  language: string;
  code: string;
  isClosed: boolean;
}

const OPEN = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n]*(?:\n|$)/;

/** Read a block that is code between fences. */
export function fence(raw: string): Fence | null {
  const open = OPEN.exec(raw);
  const mark = open?.[1];
  if (open === null || mark === undefined) return null;
  const body = raw.slice(open[0].length).trimEnd();
  const close = new RegExp(`(?:^|\\n) {0,3}${mark.charAt(0)}{${mark.length},}$`).exec(body);
  return {
    language: (open[2] ?? "").toLowerCase(),
    code: close === null ? raw.slice(open[0].length) : body.slice(0, close.index),
    isClosed: close !== null,
  };
}

/** Return the source of a block that is a formula, or null. */
export function formula(raw: string): string | null {
  const found = FORMULA.exec(raw);
  if (found?.[0].length !== raw.length) return null;
  return (found[1] ?? found[2] ?? "").trim();
}

export interface Notes {
  /** The footnotes of the text in the order of their numbers. */
  notes: { label: string; text: string }[];
  /** What a block needs to be read alone: the definitions of its links and footnotes. */
  definitions: string[];
}

const REFERENCE = /\[\^([^\]\s]{1,80})\](?!:)/g;
const LINK = /^ {0,3}\[([^\]^][^\]]{0,200})\]:[ \t]*\S/;

/** Find footnotes and the definitions of links, which may be in other blocks than what refers to them. */
export function notesOf(text: string, blocks: string[]): Notes {
  if (!/^ {0,3}\[[^\]]+\]:/m.test(text)) return { notes: [], definitions: [] };
  const texts = new Map<string, string>();
  const links = new Map<string, string>();
  for (const block of blocks) {
    if (NOTE.test(block)) {
      for (const each of block.split(/\n(?= {0,3}\[\^[^\]\s]{1,80}\]:)/)) {
        const label = NOTE.exec(each)?.[1]?.toLowerCase();
        if (label !== undefined) texts.set(label, each.replace(NOTE, "").replace(/\n(?: {4}|\t)/g, "\n").trim());
      }
    }
    const link = LINK.exec(block)?.[1]?.toLowerCase();
    if (link !== undefined) links.set(link, block.trim());
  }
  const numbers = new Map<string, number>();
  const definitions = blocks.map((block) => {
    if (!block.includes("[") || NOTE.test(block) || fence(block) !== null) return "";
    const labels = [...block.matchAll(REFERENCE)].map((each) => each[1] ?? "").filter((each) => texts.has(each.toLowerCase()));
    for (const each of labels) {
      if (!numbers.has(each.toLowerCase())) numbers.set(each.toLowerCase(), numbers.size + 1);
    }
    const lower = block.toLowerCase();
    return [
      // The number stands for the text, which is shown below all blocks.
      ...[...new Set(labels)].map((each) => `[^${each}]: ${numbers.get(each.toLowerCase()) ?? 0}`),
      ...[...links].filter(([label, link]) => lower.includes(`[${label}]`) && link !== block.trim()).map(([, link]) => link),
    ].join("\n\n");
  });
  return { notes: [...numbers.keys()].map((label) => ({ label, text: texts.get(label) ?? "" })), definitions };
}

/** Return whether a block only defines footnotes, which are shown at the end. */
export function isNote(block: string): boolean {
  return NOTE.test(block);
}
