import { Lexer } from "marked";
import { describe, expect, it } from "vitest";
import type { Run, State } from "../src/api";
import { lastSentence } from "../src/conversation";
import { cut } from "../src/markdown";
import { answersOf } from "../src/question";
import { since } from "../src/stream";
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

Last
===
`;

describe("cut", () => {
  it("gives the same blocks for a growing text as for the whole", () => {
    let last = null;
    for (let end = 1; end <= TEXT.length; end++) {
      last = cut(TEXT.slice(0, end), last);
      expect(last.blocks).toEqual(Lexer.lex(TEXT.slice(0, end)).map((token) => token.raw));
    }
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
    { checkpoint: { checkpoint_id: "c1" }, parent_checkpoint: null, metadata: {}, tasks: [{ interrupts: [{ id: "0af1", value: { question: "Go?" } }] }] },
  ] as unknown as State[];
  expect(answersOf([run], history)).toEqual([
    { id: "r2", question: "Go?", answer: "yes", user: "ada", at: "2026-01-01T00:00:00Z" },
  ]);
});
