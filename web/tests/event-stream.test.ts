import { afterEach, expect, it, vi } from "vitest";
import { around } from "../src/products/excerpt";
import { eventsOf, follow } from "../src/event-stream";
import { overheard } from "../src/stream";

const body = (...chunks: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const each of chunks) controller.enqueue(new TextEncoder().encode(each));
      controller.close();
    },
  });

afterEach(() => void vi.unstubAllGlobals());

it("reads events that are cut anywhere", async () => {
  const whole = ": hello\r\n\r\nid: 1\nevent: a\ndata: é\ndata: b\n\nid: 2\ndata:x\n\ndata: unfinished";
  const bytes = new TextEncoder().encode(whole);
  const chunks = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const each of bytes) controller.enqueue(new Uint8Array([each]));
      controller.close();
    },
  });
  const found = [];
  for await (const event of eventsOf(chunks, () => undefined)) found.push(event);
  expect(found).toEqual([{ id: "1", name: "a", data: "é\nb" }, { id: "2", name: "message", data: "x" }]);
});

it("continues behind the last event", async () => {
  const asked: (string | null)[] = [];
  const answers = [body("id: 7\ndata: a\n\n"), body("id: 8\ndata: b\n\n")];
  vi.stubGlobal("fetch", (request: Request) => {
    asked.push(request.headers.get("last-event-id"));
    return Promise.resolve(new Response(answers.shift() ?? null));
  });
  const seen: string[] = [];
  await new Promise<void>((resolve) => {
    const stop = follow({
      path: "/x", after: "5", onConnection: () => undefined,
      onEvent: (event) => {
        seen.push(event.data);
        if (seen.length === 2) {
          stop();
          resolve();
        }
      },
    });
  });
  expect([asked, seen]).toEqual([["5", "7"], ["a", "b"]]);
});

it("asks no more after a refusal", async () => {
  const refused = vi.fn(() => Promise.resolve(new Response("", { status: 404 })));
  vi.stubGlobal("fetch", refused);
  await new Promise<void>((resolve) => {
    follow({ path: "/x", after: "", onEvent: () => undefined, onConnection: (how) => how === "refused" && resolve() });
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(refused).toHaveBeenCalledOnce();
});

it("quotes a text behind characters of two units", () => {
  expect(around({ text: "🗼🗼 a quote here", start: 5, end: 10 }, 99)).toEqual(["🗼🗼 a ", "quote", " here"]);
  expect(around({ text: "one quote here", start: 4, end: 9 }, 2)).toEqual(["… e ", "quote", " h …"]);
});

it("hears what nodes write in a stream that goes on to the hook", async () => {
  const event = (method: string, data: object) => `event: ${method}\ndata: ${JSON.stringify({ method, params: { data } })}\nid: 1\n\n`;
  const whole = event("values", { a: 1 }) + event("custom", { payload: { step: "é\n" } }) + ": heartbeat\n\n" + event("custom", { payload: 2 });
  const bytes = new TextEncoder().encode(whole.replaceAll("\n", "\r\n"));
  const heard: unknown[] = [];
  const cut = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const each of bytes) controller.enqueue(new Uint8Array([each]));
      controller.close();
    },
  });
  const passed = new Response(cut.pipeThrough(overheard((each) => heard.push(each))));
  expect(await passed.text()).toBe(new TextDecoder().decode(bytes));
  expect(heard).toEqual([{ step: "é\n" }, 2]);
});
