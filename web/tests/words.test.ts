import { expect, it } from "vitest";
import { ApiError } from "../src/api";
import { ago, words } from "../src/i18n";
import { explain, isLocked, isLost, isOffline } from "../src/problems";
import { format, parse } from "../src/route";

it("has each word in each language", () => {
  expect(Object.keys(words.pt).sort()).toEqual(Object.keys(words.en).sort());
  for (const text of [...Object.values(words.pt), ...Object.values(words.en)]) expect(text.trim()).not.toBe("");
});
it("says how long ago", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(ago("2026-01-01T23:57:30Z", now)).toBe("2 minutes ago");
  expect(ago("2026-01-01T00:00:00Z", now)).toBe("yesterday");
});
it("explains refusals", () => {
  expect(explain(new ApiError(0, {}, ""))).toBe(words.en.offline);
  expect(explain(new ApiError(404, {}, ""))).toBe(words.en.gone);
  expect(isLocked(new ApiError(409, { error: "thread_locked" }, ""))).toBe(true);
  expect(isLocked(new ApiError(409, { error: "thread_resolved" }, ""))).toBe(false);
});
it("follows a stream again that an outage has ended, and forgets the outage after it", () => {
  expect(isLost(new Error("Event stream closed by the server"))).toBe(true);
  expect(isLost(new Error("Protocol request failed: 503 Service Unavailable"))).toBe(true);
  expect([0, 503, 500].map((status) => isOffline(new ApiError(status, {}, "")))).toEqual([true, true, false]);
});
it("keeps the place in the address, and nothing else", () => {
  const id = "01a205ee-7822-7231-9792-5b9c9162663a";
  expect(parse(format({ thread: id, assistant: "chat" }))).toEqual({ thread: id, assistant: "chat", view: "chat" });
  expect(parse("?thread=../../x").thread).toBeNull();
});
