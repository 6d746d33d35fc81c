// Raw HTML of a model: a few tags without attributes. All others are shown as the text that they are.
import type { Element, ElementContent, Root } from "hast";

const TAG = /<(\/?)(details|summary|br|sub|sup|kbd)(?:\s+open(?:="[^"]*")?)?\s*\/?>/gi;
const COMMENT = /<!--[\s\S]*?(?:-->|$)/g;
const AUTO = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "blockquote", "table", "td", "th", "summary"]);

/**
 * Make elements of the tags that are allowed, and let each block of text find its direction. An item of a list has
 * that of the list: with one of its own it would be left out when the browser looks for the direction of the list.
 */
export function safeHtml() {
  return (tree: Root): void => walk(tree);
}

function walk(parent: Root | Element): void {
  // The open elements, innermost last.
  const open: Element[] = [];
  const made: ElementContent[] = [];
  const add = (node: ElementContent) => (open.at(-1)?.children ?? made).push(node);
  for (const child of parent.children as (ElementContent | { type: "raw"; value: string })[]) {
    if (child.type !== "raw") {
      if (child.type === "element") walk(child);
      add(child);
      continue;
    }
    let last = 0;
    const raw = child.value.replace(COMMENT, "");
    const text = (end: number) => {
      const value = raw.slice(last, end);
      if (value.trim() !== "") add({ type: "text", value });
    };
    for (const tag of raw.matchAll(TAG)) {
      text(tag.index);
      last = tag.index + tag[0].length;
      const name = (tag[2] ?? "").toLowerCase();
      if (tag[1] === "/") {
        const at = open.findLastIndex((each) => each.tagName === name);
        if (at >= 0) open.splice(at);
        continue;
      }
      const properties = name === "details" && /\sopen/i.test(tag[0]) ? { open: true } : {};
      const element: Element = { type: "element", tagName: name, properties, children: [] };
      add(element);
      if (name !== "br") open.push(element);
    }
    text(raw.length);
  }
  parent.children = made;
  if (parent.type === "element" && AUTO.has(parent.tagName)) parent.properties.dir = "auto";
  for (const each of made) {
    if (each.type === "element" && AUTO.has(each.tagName)) each.properties.dir = "auto";
  }
}

/** Return the text in an element. */
export function words(node: Element): string {
  return node.children.map((each) => (each.type === "text" ? each.value : each.type === "element" ? words(each) : "")).join("");
}
