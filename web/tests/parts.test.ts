import { describe, expect, it } from "vitest";
import type { Run, State, Thread } from "../src/api";
import { lastSentence } from "../src/conversation";
import { cut } from "../src/content/cut";
import { wordsOf } from "../src/notice";
import { answersBelow, answersOf } from "../src/question";
import { since } from "../src/stream";
import { headingOf, titleOf } from "../src/threads";
import { slice } from "../src/virtual";

const TEXT = `# Title

First paragraph with **bold**
and a second line.

- one
- two

  more of two
- three

| a | b |
|---|---|
| 1 | 2 |

\`\`\`python
x = 1

y = 2
\`\`\`

> quote
> goes on

<details>
<summary>More</summary>

inside

- of it

</details>

$$
a

- b
$$

[^1]: A note

    goes on.

Last
===
`;

describe("cut", () => {
  it("gives the same blocks for a growing text as for the whole", () => {
    let last = null;
    for (let end = 1; end <= TEXT.length; end++) {
      last = cut(TEXT.slice(0, end), last);
      expect(last.blocks).toEqual(cut(TEXT.slice(0, end), null).blocks);
    }
  });
  it("leaves nothing out, and keeps together what belongs together", () => {
    const { blocks } = cut(TEXT, null);
    expect(blocks.join("")).toBe(TEXT);
    for (const begin of ["<details>", "$$", "[^1]:"]) {
      expect(blocks.filter((block) => block.startsWith(begin))).toHaveLength(1);
    }
    expect(blocks.find((block) => block.startsWith("<details>"))).toContain("</details>");
    expect(blocks.find((block) => block.startsWith("[^1]"))).toContain("goes on.");
  });
  it("keeps the early blocks of a long text", () => {
    const long = TEXT.repeat(50);
    const before = cut(long, null);
    const after = cut(`${long}\n\nmore`, before);
    const kept = after.blocks.filter((block, i) => Object.is(block, before.blocks[i])).length;
    expect(kept).toBeGreaterThan(before.blocks.length - 3);
  });
});

describe("slice", () => {
  it("has what touches the view, and the heights around it", () => {
    expect(slice([10, 10, 10, 10, 10], 15, 35)).toEqual({ start: 1, end: 4, before: 10, after: 10 });
    expect(slice([], 0, 100)).toEqual({ start: 0, end: 0, before: 0, after: 0 });
    expect(slice([10, 10], -100, 500)).toEqual({ start: 0, end: 2, before: 0, after: 0 });
  });
});

describe("since", () => {
  async function through(text: string, size: number): Promise<string> {
    const bytes = new TextEncoder().encode(text);
    const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    return new Response(source.pipeThrough(since("run-2"))).text();
  }
  const old = 'data: {"event_id":"synth:run-1:lc||running"}\n\ndata: {"event_id":"1-1","text":"é"}\n\n';
  const own = 'data: {"event_id":"synth:run-2:lc||running"}\n\ndata: {"event_id":"1-2","text":"ü"}\n\n';
  it.each([1, 7, 1000])("leaves out events of earlier runs, in pieces of %i bytes", async (size) => {
    expect(await through(`: beat\n\n${old}${own}`, size)).toBe(`: beat\n\n${own}`);
  });
});

it("announces the last complete sentence", () => {
  expect(lastSentence("One. Two is lon")).toBe("One.");
  expect(lastSentence("One. Two! And")).toBe("Two!");
  expect(lastSentence("No end yet")).toBe("");
});

it.each([
  ["ValueError('The pool is empty, try again.')", "The pool is empty, try again."],
  ['RuntimeError("It\'s closed.")', "It's closed."],
  ["Refused('قف هنا')", "قف هنا"],
  ["KeyError('Some name')", undefined],
  ["ValueError('x')", undefined],
  ["ValueError('not for people')", undefined],
  ["GraphRecursionError(\"Recursion limit\\nof 25\")", undefined],
  ["timeout", undefined],
])("says of %s what was written for people", (raised, words) => {
  expect(wordsOf(raised)).toBe(words);
});

it("names who has answered as the server has recorded it", () => {
  const run = {
    run_id: "r2", created_at: "2026-01-01T00:00:00Z", metadata: { answer: "forged", user: "eve" },
    kwargs: {
      command: { resume: { "0af1": "yes" } },
      config: { configurable: { langgraph_auth_user_id: "ada" } },
    },
  } as unknown as Run;
  const history = [
    { checkpoint: { checkpoint_id: "c2" }, parent_checkpoint: { checkpoint_id: "c1" }, metadata: { run_id: "r2" } },
    { checkpoint: { checkpoint_id: "c1" }, created_at: "2025-12-31T23:59:59Z", parent_checkpoint: null, metadata: {}, tasks: [{ interrupts: [{ id: "0af1", value: { question: "Go?" } }] }] },
  ] as unknown as State[];
  expect(answersOf([run], history)).toEqual([
    { id: "r2", before: history[1], isOlder: false, text: "Go? “yes” answered", user: "ada", at: "2026-01-01T00:00:00Z" },
  ]);
});

it("shows an answer as the label of the button, and only one that its run has taken", () => {
  const run = (id: string, answer: unknown) => ({ run_id: id, created_at: "2026-01-02", kwargs: { command: { resume: answer } } });
  const runs = [run("taken", { choice: "enrich", label: "Ler" }), run("command", "keep 1")] as unknown as Run[];
  const history = runs.map((each) => ({ metadata: { run_id: each.run_id }, checkpoint: { checkpoint_id: each.run_id } })) as unknown as State[];
  const takes = (states: State[]) => states.some((each) => each.metadata.run_id === "taken");
  expect(answersOf(runs, history, takes).map((each) => each.text)).toEqual(["“Ler” answered"]);
  expect(answersOf(runs, history)).toHaveLength(2);
});

it("tells sessions of one company apart by when they have begun", () => {
  const thread = (metadata: object, created_at = "2026-11-27T19:44:00") =>
    ({ thread_id: "t-1234", metadata, created_at }) as unknown as Thread;
  expect(titleOf(thread({ website: "https://acme.com/" }))).toMatch(/^acme\.com · .*27.*44/);
  expect(titleOf(thread({ website: "acme.com" }, "2026-11-28T08:00:00"))).not.toBe(titleOf(thread({ website: "acme.com" })));
  expect(titleOf(thread({ website: "acme.com", title: "Mine" }))).toBe("Mine");
  expect(titleOf(thread({ graph_id: "chat" }))).toBe("chat 1234");
  expect(headingOf({ ...thread({ website: "acme.com" }), created_at: undefined } as unknown as Thread)).toEqual({ name: "acme.com", begun: "" });
});

it("does not move an answer from before the history to the end of the messages", () => {
  const run = (id: string, at: string) => ({ run_id: id, created_at: at, kwargs: { command: { resume: "yes" } } });
  const runs = [run("new", "2026-01-03"), run("old", "2026-01-01")] as unknown as Run[];
  const history = [
    { checkpoint: { checkpoint_id: "c1" }, created_at: "2026-01-02", metadata: {}, values: { messages: [{ id: "m1", type: "ai", content: "Go?" }] } },
  ] as unknown as State[];
  const given = answersOf(runs, history);
  const shown = (ids: string[]) => [...answersBelow(given, new Set(ids))].map(([id, list]) => [id, list.map((each) => each.id)]);
  expect(shown(["m1"])).toEqual([["m1", ["new"]]]);
  // A graph without messages lists all below its result.
  expect(shown([])).toEqual([[null, ["old", "new"]]]);
  expect(answersBelow(answersOf(runs, []), new Set(["m1"])).get(null)).toHaveLength(2);
});

it.each([
  [
    { decisions: [{ type: "edit", edited_action: {} }, { type: "reject", message: "No." }] },
    [{ action_requests: [{ name: "send_email", args: {} }, { name: "delete_file", args: {} }] }],
    "send_email: edited, delete_file: rejected",
  ],
  [
    { q0: { type: "approve" }, q1: { type: "reject" } },
    ["send_email", "delete_file"].map((name) => ({ type: "tool_approval", name, args: {}, description: "It **cannot** be undone." })),
    "send_email: approved; delete_file: rejected",
  ],
  [[{ type: "accept", args: null }], [{ action_request: { action: "book", args: {} }, config: {} }], "book: approved"],
  [{ city: "Porto" }, [{ question: "**Where** to?\nAnd when?" }], "Where to? “city: Porto” answered"],
])("says in words what was decided by %j", (resume, values, text) => {
  const run = { run_id: "r", created_at: "", kwargs: { command: { resume } } } as unknown as Run;
  const interrupts = values.map((value, i) => ({ id: `q${i}`, value }));
  const history = [
    { checkpoint: { checkpoint_id: "c2" }, parent_checkpoint: { checkpoint_id: "c1" }, metadata: { run_id: "r" } },
    { checkpoint: { checkpoint_id: "c1" }, parent_checkpoint: null, metadata: {}, tasks: [{ interrupts }] },
  ] as unknown as State[];
  expect(answersOf([run], history)[0]?.text).toBe(text);
});
