// Formulas inside of a paragraph. The parser of Markdown would read their signs, so it does not see them.
import type { Element, ElementContent, Root, Text } from "hast";

// Characters for private use, which no text has.
const BEGIN = "\uE001";
const FILL = "\uE002";
const KEPT = /(`+)[^`](?:[\s\S]*?[^`])?\1(?!`)|\]\([^)\s]*\)|https?:\/\/\S+/g;
const PATTERN =
  /\\\(([\s\S]+?)\\\)|\\\[([\s\S]+?)\\\]|\$\$([^$]+?)\$\$|(?<![\w$\\])\$(?![\s$])((?:[^$\n\\]|\\[^\n])*?[^\s$\\])\$(?![\w$])/g;

export interface Formula {
  source: string;
  display: boolean;
}

/** Put signs of the same length in the place of formulas, so that offsets in the text stay true. */
export function mask(text: string): { text: string; formulas: Formula[] } {
  const formulas: Formula[] = [];
  if (!/\$|\\[([]/.test(text)) return { text, formulas };
  const replace = (part: string) =>
    part.replace(PATTERN, (all: string, round?: string, square?: string, double?: string, single?: string) => {
      const source = round ?? square ?? double ?? single ?? "";
      if (all.includes("\n\n") || (single !== undefined && isMoney(single))) return all;
      formulas.push({ source: source.trim(), display: square !== undefined });
      return BEGIN + FILL.repeat(all.length - 1);
    });
  let masked = "";
  let last = 0;
  for (const kept of text.matchAll(KEPT)) {
    masked += replace(text.slice(last, kept.index)) + kept[0];
    last = kept.index + kept[0].length;
  }
  return { text: masked + replace(text.slice(last)), formulas };
}

/** Return whether what is between two dollars may be a price and words after it. */
function isMoney(source: string): boolean {
  return /^[\d.,]/.test(source) && /\s/.test(source) && !/[\\^_=]/.test(source);
}

/** Return a plugin that puts the formulas back, as elements `formula`. */
export function unmask(formulas: Formula[]) {
  return () => (tree: Root) => {
    let next = 0;
    const split = (node: Text): ElementContent[] =>
      node.value.split(/(\uE001)\uE002*/).map((part): ElementContent => {
        if (part !== BEGIN) return { type: "text", value: part.replaceAll(FILL, "") };
        const found = formulas[next++];
        const children: ElementContent[] = [{ type: "text", value: found?.source ?? "" }];
        return { type: "element", tagName: found?.display === true ? "math-block" : "math-inline", properties: {}, children };
      });
    const walk = (parent: Root | Element): void => {
      parent.children = (parent.children as ElementContent[]).flatMap((child) => {
        if (child.type === "text") return child.value.includes(BEGIN) || child.value.includes(FILL) ? split(child) : [child];
        if (child.type === "element") walk(child);
        return [child];
      });
    };
    walk(tree);
  };
}
