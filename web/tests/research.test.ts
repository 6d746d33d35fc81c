import { describe, expect, it } from "vitest";
import type { Progress, Status } from "../src/products/research/client";
import { actionsOf, raised } from "../src/products/research/controls";
import { diagramsOf, fileName } from "../src/products/research/report";
import { remaining } from "../src/products/research/stages";

const progress = (status: Status, more: Partial<Progress> = {}) =>
  ({ status, limits_hit: [], limits: {}, ...more }) as unknown as Progress;

describe("actionsOf", () => {
  it.each([
    ["running", ["pause", "finish", "cancel"]], ["paused", ["resume", "finish", "cancel"]],
    ["cancelling", []], ["cancelled", ["resume"]], ["failed", ["resume"]], ["completed", []],
  ] as [Status, string[]][])("%s", (status, wanted) => expect(actionsOf(progress(status))).toEqual(wanted));
});

it("doubles only the limits that were reached", () => {
  const found = raised(progress("completed", { limits_hit: ["fetches"], limits: { fetches: 5, tokens: 9 } }));
  expect(found).toEqual({ fetches: 10 });
});

it("finds the diagrams of a report", () => {
  expect(diagramsOf("# A\n\n```mermaid\npie\n  \"a\" : 1\n```\n\n```\ncode\n```\n\n```mermaid\nflowchart LR\n```\n"))
    .toEqual(["pie\n  \"a\" : 1", "flowchart LR"]);
});

it.each([[null, "No estimate yet"], [0.2, "About 1 s left"], [89, "About 89 s left"], [200, "About 3 min left"]])(
  "says that %s s remain", (seconds, wanted) => expect(remaining(seconds)).toBe(wanted));

it.each([["What does X cost?", "what-does-x-cost"], ["../..\\", "report"]])(
  "names the file of %j", (title, wanted) => expect(fileName(title)).toBe(wanted));
