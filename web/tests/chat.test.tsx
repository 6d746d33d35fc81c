import { render } from "@testing-library/react";
import { beforeAll, describe, expect, it } from "vitest";
import { ApiError } from "../src/api";
import { preload, Text } from "../src/markdown";
import { annotate } from "../src/products/chat/annotate";
import { notesOf, type Citation } from "../src/products/chat/citation";
import { pieces } from "../src/products/chat/passage";
import { reason } from "../src/products/chat/upload-row";
import { shown as read } from "../src/shown";

beforeAll(async () => {
  await preload();
});

const cited = (number: number): Citation => ({
  number, title: "T", section: "", passage: number, text: "quoted", document_id: "d", path: "d.md", page: null, start: 10, end: 16,
});

function annotated(text: string, unsupported: string[] = [], numbers = [1, 2]) {
  const notes = {
    citations: numbers.map(cited),
    // As Python counts: characters, not units of UTF-16.
    unsupported: unsupported.map((each) => {
      const start = Array.from(text.slice(0, text.indexOf(each))).length;
      return { start, end: start + Array.from(each).length, text: each };
    }),
    isIncomplete: false,
  };
  return render(<Text text={text} growing={false} plugins={annotate(text, notes, { source: "Source" })} />).container;
}

const buttons = (found: HTMLElement) => [...found.querySelectorAll("[data-cite]")].map((each) => each.textContent);
const marks = (found: HTMLElement) => [...found.querySelectorAll("mark")].map((each) => each.textContent);

describe("annotate", () => {
  it.each([
    ["One [1] and two [1, 2].", ["1", "1", "2"]],
    ["Unknown [3] stays, [9][1].", ["1"]],
    ["Code `a[1]` and\n\n```\nb[1]\n```", []],
    ["**Bold [2]** and a | table\n\n| a |\n| - |\n| x [1] |", ["2", "1"]],
    ["[1](https://a.example/)", []],
  ])("makes buttons of %j", (text, wanted) => expect(buttons(annotated(text))).toEqual(wanted));

  it("marks sentences behind characters of two units, and in later blocks", () => {
    const found = annotated("🗼🗼 Fine [1].\n\nSecond block. Nobody said this.", ["Nobody said this."]);
    expect(marks(found)).toEqual(["Nobody said this."]);
  });
  it("marks a sentence with bold words, and keeps the button in it", () => {
    const found = annotated("It has **nine** levels [1].", ["It has **nine** levels [1]."]);
    expect(marks(found).join("")).toBe("It has nine levels .");
    expect(buttons(found)).toEqual(["1"]);
  });
});

describe("notesOf", () => {
  const shown = read({ id: "a", type: "ai", content: "" }, 0);
  it("prefers the stored message, and gives an old answer nothing of the last one", () => {
    const values = { citations: [cited(1)] };
    expect(notesOf(shown, undefined, values, true).citations).toHaveLength(1);
    expect(notesOf(shown, undefined, values, false).citations).toEqual([]);
    expect(notesOf(shown, { additional_kwargs: { incomplete: true } }, {}, false).isIncomplete).toBe(true);
  });
});

describe("pieces", () => {
  it("shows the text that passages share once", () => {
    const part = (number: number, text: string, start: number) =>
      ({ number, section: "", page: null, text, start, end: start + text.length });
    const parts = [part(1, "before quo", 3), part(2, "quoted", 10), part(3, "ted after", 13)];
    expect(pieces(parts, cited(2)).map((each) => each.text).join("")).toBe("before\n\nquoted\n\nafter");
  });
});

describe("reason", () => {
  it.each([
    [new ApiError(413, {}, "x"), /larger/],
    [new ApiError(422, {}, "The document cannot be read: it is larger than 9 bytes"), /larger/],
    [new ApiError(422, {}, "The name must end with one of .csv, .md"), /\.csv, \.md/],
    [new ApiError(422, {}, "The document cannot be read: it is encrypted"), /encrypted/],
    [new ApiError(503, {}, "x"), /busy/],
    [new ApiError(0, {}, ""), /connection/],
  ])("%#", (problem, wanted) => expect(reason(problem)).toMatch(wanted));
});
