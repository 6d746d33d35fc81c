// Parse Mermaid diagrams: a JSON list of texts on standard input, a JSON list of errors or nulls on
// standard output.
import { readFileSync } from "node:fs";
import { JSDOM } from "jsdom";

// The parser cleans labels with DOMPurify, which needs a document.
const { window } = new JSDOM("");
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import("mermaid");

const found = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    await mermaid.parse(text);
    found.push(null);
  } catch (error) {
    found.push(String(error));
  }
}
console.log(JSON.stringify(found));
