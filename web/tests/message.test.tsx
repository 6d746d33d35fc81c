import { fireEvent, render, screen } from "@testing-library/react";
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { blocksOf } from "../src/content/block";
import { Blocks } from "../src/content/blocks";
import { Media } from "../src/content/media";
import { Tool } from "../src/content/tool";
import { paired, shown } from "../src/shown";
import { Tree } from "../src/state/tree";

const read = (messages: object[]) => messages.map((each, i) => shown(each as Parameters<typeof shown>[0], i));
const call = { id: "c1", name: "search_web", args: { query: "q" }, type: "tool_call" as const };

describe("paired", () => {
  it("puts results at their calls, and gives the same object until one changes", () => {
    const messages = read([
      new HumanMessage({ id: "h", content: "hi" }),
      new AIMessage({ id: "a", content: "", tool_calls: [call, { ...call, id: "c2" }] }),
      new ToolMessage({ id: "t", content: "found", tool_call_id: "c1", status: "error" }),
      new ToolMessage({ id: "lone", content: "x", tool_call_id: "other", name: "lost" }),
    ]);
    const found = paired(messages);
    expect(found.map((each) => each.id)).toEqual(["h", "a", "lone"]);
    expect(found[1]?.toolCalls.map((each) => each.result?.isError)).toEqual([true, undefined]);
    expect(paired(messages)[1]).toBe(found[1]);
    const more = [...messages, ...read([{ id: "t2", type: "tool", content: "y", tool_call_id: "c2" }])];
    expect(paired(more)[1]?.toolCalls[1]?.result?.isError).toBe(false);
  });
  it("hides what is not for people", () => {
    const hidden = [
      { id: "s", type: "system", content: "secret" }, { id: "r", type: "remove", content: "" },
      { id: "do-not-render-1", type: "ai", content: "x" }, { id: "e", type: "ai", content: "" },
    ];
    expect(paired(read(hidden))).toEqual([]);
  });
  it("reads arguments that still stream in", () => {
    const chunk = new AIMessageChunk({
      id: "a", content: [{ type: "tool_call_chunk", id: "c", name: "f", args: "{\"a\": [1" }],
      tool_call_chunks: [{ id: "c", name: "f", args: "{\"a\": [1", index: 0, type: "tool_call_chunk" }],
    });
    const found = read([chunk])[0];
    expect(found?.toolCalls).toHaveLength(1);
    expect(found?.blocks).toEqual([]);
  });
  it("takes searches of the provider for calls", () => {
    const found = read([{ type: "ai", content: [
      { type: "server_tool_call", id: "s", name: "web_search", args: { query: "q" } },
      { type: "server_tool_result", tool_call_id: "s", status: "success", output: [{ url: "u" }] },
    ] }])[0];
    expect(found?.toolCalls[0]?.result?.blocks).toHaveLength(1);
  });
});

describe("blocksOf", () => {
  it.each([
    [{ type: "image", base64: "AA", mime_type: "image/png" }, "image", "data:image/png;base64,AA"],
    [{ type: "image", source_type: "base64", data: "AA", mime_type: "image/gif" }, "image", "data:image/gif;base64,AA"],
    [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }, "image", "data:image/png;base64,AA"],
    [{ type: "image_url", image_url: { url: "https://a.example/x" } }, "image", "https://a.example/x"],
    [{ type: "image_url", image_url: "data:image/png;base64,AA" }, "image", "data:image/png;base64,AA"],
    [{ type: "input_audio", input_audio: { data: "AA", format: "mp3" } }, "audio", "data:audio/mp3;base64,AA"],
    [{ type: "media", mime_type: "video/mp4", data: "AA" }, "video", "data:video/mp4;base64,AA"],
    [{ type: "file", file: { file_data: "data:a/b;base64,AA", filename: "n" } }, "file", "data:a/b;base64,AA"],
    [{ type: "file", source_type: "url", url: "https://a.example/f" }, "file", "https://a.example/f"],
    [{ type: "text-plain", text: "a b", mime_type: "text/plain", title: "n" }, "file", "data:text/plain;charset=utf-8,a%20b"],
    [{ type: "image", base64: "AA", mime_type: "image/png\"onerror=x" }, "image", "data:image/png;base64,AA"],
    [{ type: "non_standard", value: { type: "image_url", image_url: { url: "data:image/png;base64,AA" } } }, "image", "data:image/png;base64,AA"],
  ])("reads %j", (part, kind, url) => expect(blocksOf([part], {})[0]).toMatchObject({ kind, url }));
  it.each([
    [[{ type: "reasoning", reasoning: "r" }], {}],
    [[{ type: "thinking", thinking: "r", signature: "s" }], {}],
    [[{ type: "non_standard", value: { type: "thinking", thinking: "r" } }, { type: "non_standard", value: { type: "redacted_thinking", data: "x" } }], {}],
    [[{ type: "reasoning", summary: [{ type: "summary_text", text: "r" }] }], {}],
    ["", { reasoning_content: "r" }],
  ])("finds the reasoning in %j", (content, kwargs) =>
    expect(blocksOf(content, kwargs)).toEqual([{ kind: "reasoning", text: "r" }]));
  it("joins texts with their sources, and keeps what it does not know", () => {
    const found = blocksOf(["a", { type: "text", text: "b", annotations: [{ type: "citation", url: "https://a.example/", title: "A" }] }, { type: "hologram", depth: 3 }, { type: "non_standard", value: { foo: "bar" } }, null, 5], {});
    expect(found).toEqual([
      { kind: "text", text: "ab", sources: [{ url: "https://a.example/", title: "A" }] },
      { kind: "other", type: "hologram", value: { type: "hologram", depth: 3 } },
      { kind: "other", type: "non_standard", value: { foo: "bar" } },
    ]);
  });
});

describe("cards", () => {
  it("show a call in one line, and arguments and result when opened", () => {
    const result = { blocks: blocksOf("{\"cities\": [\"Lisbon\"]}", {}), isError: true };
    const { container } = render(<Tool call={{ ...call, result }} isBusy={false} />);
    const details = screen.getByRole<HTMLDetailsElement>("group");
    expect(container.querySelector("summary")?.textContent).toBe("Used search_webquery: qFailed");
    expect(screen.queryByText("cities")).toBeNull();
    details.open = true;
    fireEvent(details, new Event("toggle"));
    expect(screen.getByText("cities")).not.toBeNull();
  });
  it("tell a call that a person has rejected from one that has failed", () => {
    const said = (text: string) => {
      const result = { blocks: blocksOf(text, {}), isError: true };
      const { container } = render(<Tool call={{ ...call, result }} isBusy={false} />);
      return container.querySelector(".badge")?.textContent;
    };
    expect(said("User rejected the tool call for `search_web` with reason: No.")).toBe("Rejected");
    expect(said("User rejected the tool call for `search_web` with id c1. The tool was not executed.")).toBe("Rejected");
    expect(said("Error: User rejected the connection")).toBe("Failed");
  });
  it("say of an image that it cannot be shown", () => {
    const { container } = render(<Media file={{ kind: "image", url: "data:image/png;base64,AA", mime: "image/png", name: "" }} />);
    const image = container.querySelector("img");
    if (image === null) throw new Error("there is no image");
    fireEvent.error(image);
    expect(container.querySelector("img")).toBeNull();
    expect(container.textContent).toContain("The browser cannot show this file.");
  });
  it("show reasoning while it grows, until the person decides", () => {
    const blocks = blocksOf([{ type: "reasoning", reasoning: "I wonder" }], {});
    const first = render(<Blocks blocks={blocks} growing />);
    const details = () => first.container.querySelector<HTMLDetailsElement>("details");
    expect(details()?.open).toBe(true);
    first.rerender(<Blocks blocks={blocks} growing={false} />);
    expect(details()?.open).toBe(false);
    first.rerender(<Blocks blocks={blocks} growing />);
    const fold = details();
    if (fold === null) throw new Error("there is no reasoning");
    fold.open = false;
    fireEvent(fold, new Event("toggle"));
    first.rerender(<Blocks blocks={[...blocks]} growing />);
    expect(details()?.open).toBe(false);
  });
  it("load nothing of another host, and open no data as a page", () => {
    const spy = { kind: "image" as const, url: "https://spy.example/a.png", mime: "image/png", name: "" };
    const { container } = render(<><Media file={spy} /><Media file={{ ...spy, kind: "audio" }} /><Media file={{ ...spy, url: "data:text/html,x" }} /></>);
    expect(container.querySelector("img, audio")).toBeNull();
    expect([...container.querySelectorAll("a")].map((each) => each.rel)).toEqual(["noopener noreferrer", "noopener noreferrer"]);
    expect(container.querySelector("a[href^=data]")).toBeNull();
  });
});

describe("a tree", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, i) => ({ id: i, name: `row ${i}`, price: { amount: i } }));
  it("is open with all that is in it if it is small", () => {
    const { container } = render(<Tree value={{ trip: { legs: [{ from: "BER", to: "LIS" }], flexible: false }, passengers: [{ name: "Ana <b>Silva</b>" }] }} />);
    expect(container.querySelector("details")).toBeNull();
    for (const text of ["BER", "LIS", "false", "Ana <b>Silva</b>"]) expect(container.textContent).toContain(text);
  });
  it("shows the first rows of a large value, and more on demand", () => {
    const { container } = render(<Tree value={{ total: 150, hotels: rows(150) }} />);
    const lines = () => container.querySelectorAll("summary").length;
    expect(lines()).toBe(28);
    expect(container.querySelector("summary")?.textContent).toBe("id: 0, name: row 0, price: …");
    fireEvent.click(screen.getByText("Show 100 more"));
    expect(lines()).toBe(128);
    fireEvent.click(screen.getByText("Show 22 more"));
    expect(lines()).toBe(150);
    expect(container.querySelector("button")).toBeNull();
  });
  it("ends, however deep a value is", () => {
    let deep: object = {};
    for (let i = 0; i < 5_000; i++) deep = { deep };
    const { container } = render(<Tree value={deep} />);
    expect(container.querySelectorAll("dl").length).toBeLessThan(40);
  });
});
