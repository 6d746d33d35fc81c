import { describe, expect, it } from "vitest";
import type { State } from "../src/api";
import { places } from "../src/branches";

/** Make a checkpoint; `messages` are ids. */
function state(id: string, parent: string | null, source: string, messages: string[]): State {
  return {
    values: { messages: messages.map((each) => ({ id: each })) },
    checkpoint: { checkpoint_id: id },
    parent_checkpoint: parent === null ? null : { checkpoint_id: parent },
    created_at: `2026-01-01T00:00:${id.padStart(2, "0")}`,
    metadata: { source },
  };
}

// Two turns; the first message has two versions, and so has the answer of the second version.
const history = [
  state("9", "7", "loop", ["h2", "a3"]),
  state("8", "7", "loop", ["h2", "a2"]),
  state("7", "6", "loop", ["h2"]),
  state("6", "1", "input", []),
  state("3", "2", "loop", ["h1", "a1"]),
  state("2", "1", "loop", ["h1"]),
  state("1", null, "input", []),
];

describe("places", () => {
  it("finds the versions of an edited first message", () => {
    expect(places(history).get("h2")).toEqual({ parent: "1", versions: ["3", "9"], current: 1 });
  });
  it("finds the versions of an answer", () => {
    expect(places(history).get("a3")).toEqual({ parent: "7", versions: ["8", "9"], current: 1 });
  });
  it("follows the branch that is shown", () => {
    expect([...places(history, "3").keys()]).toEqual(["h1", "a1"]);
    expect(places(history, "3").get("h1")?.current).toBe(0);
  });
  it("forks a later message from the end of the turn before it", () => {
    const later = [state("5", "4", "loop", ["h1", "a1", "h9"]), state("4", "3", "input", ["h1", "a1"]), ...history.slice(4)];
    expect(places(later).get("h9")?.parent).toBe("3");
  });
  it("knows nothing of an empty thread", () => {
    expect(places([]).size).toBe(0);
  });
});
