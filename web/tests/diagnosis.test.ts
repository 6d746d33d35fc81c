import { describe, expect, it } from "vitest";
import { tree } from "../src/products/diagnosis/causes";
import { shortened, told, type Event, type Hypothesis } from "../src/products/diagnosis/client";
import { matching } from "../src/products/diagnosis/log";

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
