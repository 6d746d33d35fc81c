import { beforeEach, expect, it, vi } from "vitest";
import * as api from "../src/api";
import { products } from "../src/products";
import { factsOf, optionName } from "../src/products/icp_finder/asked";
import { numbersOf, partsOf, secure, sorted, type Candidate } from "../src/products/icp_finder/candidate";
import { changesOf, messageOf, refusedOf, valuesOf, type Profile } from "../src/products/icp_finder/profile";
import { openFresh } from "../src/products/icp_finder/requests";
import { words } from "../src/products/icp_finder/words";

vi.mock("../src/api", { spy: true });
beforeEach(() => vi.clearAllMocks());

const empty: Profile = { industries: [], regions: [], sizes: [], keywords: [], exclusions: [] };
const candidate = (name: string, score: number, region = ""): Candidate => ({
  key: name, name, score, region, industry: "", source: "web", website: null, evidence: [], parts: {},
  enrichment: { status: null, note: null, about: null, size: null, emails: [], phones: [], pages: [] },
  verdict: null, reason: "",
});

it("has each word in each language", () => {
  expect(Object.keys(words.pt).sort()).toEqual(Object.keys(words.en).sort());
});
it("shows only what differs, in any order and case", () => {
  const before = { ...empty, regions: ["Singapore", "Johor"], keywords: ["cold"] };
  expect(changesOf(before, { ...before, regions: ["johor", "singapore"] })).toEqual([]);
  expect(changesOf(before, { ...before, regions: ["Johor", "Penang"] })).toEqual([
    { field: "regions", added: ["Penang"], removed: ["Singapore"], after: ["Johor", "Penang"] },
  ]);
});
it("writes a change as a message that keeps each value whole", () => {
  const after = { ...empty, industries: ["Food, drinks and tobacco", "Logistics"] };
  const before = { ...empty, regions: ["Johor"] };
  expect(messageOf(changesOf(before, after))).toBe('Industries: "Food, drinks and tobacco", "Logistics"\nRegions: any');
});
it("reads one value a line and drops what would end a value", () => {
  expect(valuesOf('  Food "and" drinks; tea \n\nfood and drinks\nFood and drinks')).toEqual([
    "Food and drinks tea", "Food and drinks",
  ]);
  expect(refusedOf(["a".repeat(81)])).toHaveLength(81);
  expect(refusedOf(Array.from({ length: 13 }, (_, i) => `value ${i}`))).toBe("value 12");
});
it("sorts candidates with unknown values last", () => {
  const all = [candidate("b", 0.9), candidate("c", 0.5, "Johor"), candidate("a", 0.1, "Penang")];
  expect(sorted(all, "best")).toBe(all);
  expect(sorted(all, "name").map((each) => each.name)).toEqual(["a", "b", "c"]);
  expect(sorted(all, "region").map((each) => each.name)).toEqual(["c", "a", "b"]);
});
it("pairs each part of a score with its proof, the largest first", () => {
  const proof = { part: "region", found: "Johor", source: "register" };
  const found = partsOf({ ...candidate("a", 1), parts: { size: 0.1, region: 0.4, feedback: -0.2 }, evidence: [proof] });
  expect(found).toEqual([
    { part: "region", value: 0.4, proof }, { part: "size", value: 0.1, proof: undefined },
    { part: "feedback", value: -0.2, proof: undefined },
  ]);
});
it("numbers candidates as the list has that the finder has shown last, whatever their order now", () => {
  const numbers = numbersOf(["a", "gone", "b"]);
  expect([numbers.get("b"), numbers.get("a"), numbers.get("new")]).toEqual([3, 1, undefined]);
  expect(numbersOf(undefined).size).toBe(0);
});
it.each([
  ["the open session", { action: "resume", thread_id: "old" }, "fresh", "old"],
  ["the newest of several", { action: "choose", candidates: [{ thread_id: "newest" }, { thread_id: "old" }] }, "fresh", "newest"],
  // Where there is none, the server has just begun one.
  ["none", { action: "create", thread_id: "first" }, "first", undefined],
])("starts a fresh session in place of %s", async (_, resolution, opened, earlier) => {
  const resolve = vi.spyOn(api, "resolve").mockResolvedValue(resolution as api.Resolution);
  const call = vi.spyOn(api, "call").mockResolvedValue({ thread_id: "fresh" });
  expect(await openFresh("icp_finder", "acme.example")).toBe(opened);
  expect(resolve).toHaveBeenCalledWith("icp_finder", "acme.example");
  const metadata = { agent: "icp_finder", website: "acme.example", resumed_from: earlier };
  expect(call.mock.calls).toEqual(earlier === undefined ? [] : [["POST", "/threads", { metadata }]]);
});
it("takes only a run as an answer that has noted one", () => {
  const states = (...answers: unknown[]) => answers.map((answer) => ({ values: { answer } }) as unknown as api.State);
  const takes = products.icp_finder?.takes;
  expect(takes?.(states(null, { kind: "enrich", value: "enrich" }))).toBe(true);
  expect(takes?.(states(null, undefined))).toBe(false);
  expect(takes?.([])).toBe(false);
});
it("links over https only", () => {
  expect(secure("http://acme.example/a")).toBe("https://acme.example/a");
  expect(secure("acme.example")).toBe("https://acme.example/");
  for (const bad of [null, "javascript:alert(1)", "", "https://user@evil.example", "register"]) expect(secure(bad)).toBeNull();
});
it("names options and facts of questions", () => {
  expect(optionName("enrich", { value: "enrich", label: "Read them" })).toBe("Read them");
  localStorage.setItem("threadhold-language", "pt");
  expect(optionName("rerun", { value: "keep", label: "x" })).toBe("Ficar com o que há");
  expect(optionName("context_change", { value: "keep", label: "x" })).toBe("Não alterar nada");
  expect(optionName("unheard", { value: "odd", label: "Odd" })).toBe("Odd");
  localStorage.removeItem("threadhold-language");
  const asked = { kind: "context_change", question: "", options: [], details: { changed: ["regions"], website: "acme.example" } };
  expect(factsOf(asked)).toEqual([["Would change", "Regions"], ["New session for", "acme.example"]]);
});
