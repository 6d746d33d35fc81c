import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api";
import { isTooLong } from "../src/attachments/blocks";
import { divided } from "../src/attachments/divided";
import { tree } from "../src/products/diagnosis/causes";
import { shortened, told, type Event, type Hypothesis, type State } from "../src/products/diagnosis/client";
import { causesOf, concluded, type Diff } from "../src/products/diagnosis/diff";
import { wording } from "../src/products/diagnosis/given";
import { matching } from "../src/products/diagnosis/log";
import { measures } from "../src/products/diagnosis/measures";
import { answeredIn } from "../src/products/diagnosis/panel";
import * as slices from "../src/products/diagnosis/slices";
import { mayPass, reason } from "../src/products/diagnosis/uploads";
import { testName } from "../src/products/diagnosis/words";
import { optionsOf, meantBy } from "../src/questions/asked";

const hypothesis = (parent: string | null, confidence: number, seq: number) =>
  ({ parent, confidence, seq }) as unknown as Hypothesis;

it("orders the tree by confidence, below each parent", () => {
  const found = tree({ a: hypothesis(null, 0.2, 1), b: hypothesis(null, 0.9, 2), c: hypothesis("a", 0.5, 3), d: hypothesis("a", 0.5, 4) });
  expect(found.map((each) => [each.id, each.children.map((child) => child.id)])).toEqual([["b", []], ["a", ["c", "d"]]]);
});

describe("events", () => {
  const event = (seq: number, type: string, data: Record<string, unknown>): Event => ({ seq, type, at: "", data });
  const events = [
    event(1, "note_added", { author: "ada", text: "Disk grown" }),
    event(2, "test_recorded", { hypothesis: "h", test: "order", outcome: "passed", reason: "First" }),
  ];
  it("are found by kind and words", () => {
    expect(matching(events, "", "DISK").map((each) => each.seq)).toEqual([1]);
    expect(matching(events, "test_recorded", "").map((each) => each.seq)).toEqual([2]);
    expect(matching(events, "note_added", "first")).toEqual([]);
  });
  it("keep no text of a million characters", () => {
    expect(told(shortened(event(3, "note_added", { author: "a", text: "x".repeat(1e6) }))).length).toBeLessThan(320);
  });
});

describe("parts of a text", () => {
  const text = "one\n🗼 two\nthree\nfour";
  const cut = { start: true, end: true };
  it("begin and end at lines, and count characters of two units once", () => {
    expect(slices.whole({ start: 100, text }, cut)).toEqual({ start: 104, end: 116, text: "🗼 two\nthree\n" });
    expect(slices.whole({ start: 100, text }, { start: false, end: false })).toEqual({ start: 100, end: 120, text });
  });
  it("keep a line without an end, and the place that is marked", () => {
    expect(slices.whole({ start: 5, text: "xxxx" }, cut).text).toBe("xxxx");
    expect(slices.whole({ start: 5, text: "xx\n" }, cut).text).toBe("xx\n");
    expect(slices.whole({ start: 0, text }, cut, { start: 1, end: 20 }).text).toBe(text);
  });
  it("follow each other without a gap, in both directions", () => {
    const all = Array.from({ length: 9_000 }, (_, i) => `line ${i} ${"x".repeat(i % 70)}`).join("\n");
    const read = ({ start, end, cut }: slices.Wanted) => slices.whole({ start, text: all.slice(start, end) }, cut);
    let part = read(slices.first(all.length));
    let joined = part.text;
    while (part.end < all.length) {
      const next = read(slices.later(part, all.length));
      expect(next.start).toBe(part.end);
      joined += next.text;
      part = next;
    }
    expect(joined).toBe(all);
    let before = read(slices.last(all.length));
    while (before.start > 0) {
      const next = read(slices.earlier(before));
      expect(next.end).toBe(before.start);
      before = next;
    }
  });
  it("are around a place, and never the whole of a long one", () => {
    expect(slices.around({ start: 10, end: 20 }, 50)).toEqual({ start: 0, end: 50, cut: { start: false, end: false } });
    const far = slices.around({ start: 40_000_000, end: 45_000_000 }, 50_000_000);
    expect(far.end - far.start).toBeLessThan(20_000);
    expect(slices.from(49_999_999, 50_000_000)).toEqual({ start: 49_980_000, end: 50_000_000, cut: { start: true, end: false } });
  });
  it("are divided at the place", () => {
    expect(slices.split({ start: 10, end: 15, text: "🗼 two" }, { start: 12, end: 14 })).toEqual(["🗼 ", "tw", "o"]);
  });
});

describe("a text that is too long for a message", () => {
  it("is known by the bytes that it has in JSON", () => {
    expect(isTooLong("x".repeat(90), 100)).toBe(false);
    expect(isTooLong("\n".repeat(60), 100)).toBe(true);
    expect(isTooLong("🗼".repeat(30), 100)).toBe(true);
    expect(isTooLong("x".repeat(1e7), Infinity)).toBe(false);
  });
  const now = new Date(2026, 2, 1, 9, 5, 7);
  const told = async (text: string) => {
    const { words, files } = divided(text, now);
    return [words, await Promise.all(files.map(async (file) => [file.name, await file.text()]))];
  };
  it("is one file, or those that its headers name, behind what the person says", async () => {
    expect(await told("a\nb\n")).toEqual(["", [["pasted 09.05.07.txt", "a\nb\n"]]]);
    expect(await told("Why?\n==> a.log <==\n1\n2\n==> b.log <==\r\n3")).toEqual(["Why?", [["a.log", "1\n2"], ["b.log", "3"]]]);
  });
  it("loses nothing before its first header", async () => {
    const long = "x".repeat(20_000);
    expect(await told(`${long}\n==> a <==\n1`)).toEqual(["", [["pasted 09.05.07.txt", long], ["a", "1"]]]);
  });
});

describe("an upload", () => {
  it.each([
    [413, {}, "", /larger/],
    [409, { error: "session_full" }, "At most 60", /no more sources/],
    [409, { error: "thread_locked" }, "", /closed/],
    [422, {}, "The file a is empty", /empty/],
    [422, {}, "The file a is packed with gzip: unpack it first", /packed with gzip/],
    [401, {}, "", /signed out/],
    [0, {}, "", /connection broke/],
    [422, {}, "Something new", /^Something new$/],
  ])("that is refused by %i %j says what to do", (status, body, message, wanted) => {
    expect(reason(new ApiError(status, body, message))).toMatch(wanted);
  });
  it("is tried again where that may help", () => {
    const statuses = [0, 401, 404, 409, 413, 422, 429, 500, 503];
    expect(statuses.filter((status) => mayPass(new ApiError(status, {}, "")))).toEqual([0, 401, 429, 500, 503]);
  });
  it("is read by a message that names no host to look at", () => {
    const said = wording(["a.log", "b.csv", "c.txt", "d"]);
    expect(said).toBe("I added a.log, b.csv, c.txt, …. Please read them.");
    expect(said).not.toMatch(/check|probe|ping|test|look|query|try/i);
  });
  it("is measured in the words of the reader", () => {
    expect(measures({ kind: "log", format: "log", lines: 1, chars: 1 })).toBe("Log · 1 line · 1 character");
    expect(measures({ kind: "metrics", format: "csv", lines: 1200, chars: 5 })).toMatch(/^Metrics · csv · 1.200 lines · 5 characters$/);
  });
  it("is not read until the assistant has answered after it", () => {
    const event = (seq: number, type: string, data = {}): Event => ({ seq, type, at: "", data });
    const said = [event(1, "message_added", { role: "user" }), event(2, "message_added", { role: "assistant" }), event(3, "source_added")];
    expect(answeredIn(said)).toBe(2);
    expect(answeredIn([])).toBe(0);
  });
});

describe("two moments", () => {
  const cause = (statement: string, confidence: number, status: string, outcomes: Record<string, string> = {}) => ({
    statement, confidence, status, tests: Object.fromEntries(Object.entries(outcomes).map(([name, outcome]) => [name, { outcome }])),
  });
  const state = (hypotheses: Record<string, unknown>) => ({ hypotheses }) as unknown as State;
  const before = state({ a: cause("A", 0.3, "investigating", { order: "unclear" }), c: cause("C", 0.2, "proposed") });
  const after = state({ a: cause("A", 0.9, "supported", { order: "passed", evidence: "passed" }), b: cause("B", 0.1, "refuted") });
  it("have causes with their confidence before and after, the most likely first", () => {
    const diff = { hypotheses: { added: { b: {} }, removed: { c: {} }, changed: { a: {} } } } as unknown as Diff;
    expect(causesOf(diff, before, after)).toEqual([
      {
        id: "a", change: "changed", statement: "A", confidence: [0.3, 0.9], status: ["investigating", "supported"],
        tests: [{ name: "order", before: "unclear", after: "passed" }, { name: "evidence", before: undefined, after: "passed" }],
      },
      { id: "c", change: "removed", statement: "C", confidence: [0.2, undefined], status: ["proposed", undefined], tests: [] },
      { id: "b", change: "added", statement: "B", confidence: [undefined, 0.1], status: [undefined, "refuted"], tests: [] },
    ]);
  });
  it("have a conclusion in words", () => {
    expect(concluded(null, after)).toBe("Still investigating");
    expect(concluded({ outcome: "cause", hypothesis: "a", missing: [] }, after)).toBe("Cause found: A");
    expect(concluded({ outcome: "inconclusive", hypothesis: null, missing: [] }, after)).toBe("Inconclusive");
  });
});

it("names each test that a cause can have, also those of earlier releases", () => {
  const tests = ["evidence", "corroboration", "order", "prediction", "contradiction", "doubt", "signature", "propagation", "metric", "novelty", "origin"];
  expect(tests.filter((each) => testName(each) === each)).toEqual([]);
  expect(new Set(tests.map(testName)).size).toBe(tests.length);
  expect(testName("unheard_of")).toBe("unheard_of");
});

it("offers that there is no more, and takes any other text as an answer", () => {
  const options = optionsOf({ kind: "missing_evidence", question: "?", options: [{ id: "no", label: "That is all I have" }] });
  expect(options).toEqual([{ value: "no", label: "That is all I have" }]);
  expect(meantBy("That is all I have", options)).toBe("no");
  expect(meantBy("It began at nine", options)).toBe("It began at nine");
});
