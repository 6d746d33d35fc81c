import { afterEach, expect, it } from "vitest";
import { setLanguage } from "../src/i18n";
import { checkedBy, isComplete, limits } from "../src/products/tutor/check";
import { pieces } from "../src/products/tutor/pieces";
import { until } from "../src/products/tutor/until";
import { words } from "../src/products/tutor/words";

afterEach(() => localStorage.clear());

it("has each word in each language", () => {
  expect(Object.keys(words.pt).sort()).toEqual(Object.keys(words.en).sort());
});
it("cuts a correction into pieces, also behind an emoji", () => {
  const issue = { type: "agreement", start: 2, end: 5, original: "has", replacement: "have", message: "", sources: [] };
  expect(pieces("😀 has it", [issue]).map((each) => [each.kind, each.text])).toEqual([
    ["same", "😀 "], ["removed", "has"], ["added", "have"], ["same", " it"],
  ]);
});
it("says how a message was checked, and what is missing", () => {
  const check = { checked_by: ["rules", "harper"], degraded: "timeout" };
  expect(checkedBy(check)).toBe("Checked by rules and the grammar checker Harper.");
  expect(limits(check)).toContain("took too long");
  expect(isComplete(check)).toBe(false);
  expect(isComplete({ checked_by: ["model"], degraded: null })).toBe(true);
  expect(isComplete({ checked_by: [], degraded: null })).toBe(false);
  setLanguage("pt");
  expect(checkedBy(check)).toBe("Verificado por regras e o corretor Harper.");
});
it("says when an exercise comes again", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  expect(until("2026-01-01T00:10:00Z", now)).toBe("in 10 minutes");
  expect(until("2026-01-03T00:10:00Z", now)).toBe("in 2 days");
  expect(until("2026-01-01T00:00:20Z", now)).toBe("in 1 minute");
});
