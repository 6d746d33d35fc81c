// A component with `useStream` of @langchain/react, driven by lines on standard input.
//
// Arguments: the server's URL, the assistant, the id of the thread.
// Input:     {"submit": input} | {"respond": value}
// Output:    one line for each change: messages, isLoading, interrupt, error, metadata of messages.
import { createElement, useEffect, useRef } from "react";
import { create, act } from "react-test-renderer";
import { createInterface } from "node:readline";
import { useMessageMetadata, useStream } from "@langchain/react";

const [apiUrl, assistantId, threadId] = process.argv.slice(2);
let stream;
let requests = 0;

function counted(url, init) {
  if (String(url).endsWith("/stream/events")) requests += 1;
  return fetch(url, init);
}

function Message({ id, found }) {
  found[id] = useMessageMetadata(stream, id) ?? null;
  return null;
}

function View() {
  stream = useStream({ apiUrl, assistantId, threadId, fetch: counted });
  const said = useRef("");
  const found = {};
  useEffect(() => {
    const line = JSON.stringify({
      loading: stream.isLoading,
      hydrating: stream.isThreadLoading,
      error: stream.error == null ? null : String(stream.error),
      interrupt: stream.interrupt?.value ?? null,
      messages: stream.messages.map((each) => ({
        id: each.id, type: each.getType(), text: each.text, ...(found[each.id] ?? {}),
      })),
      requests,
    });
    if (line !== said.current) console.log(line);
    said.current = line;
  });
  return stream.messages.map((each) => createElement(Message, { key: each.id, id: each.id, found }));
}

create(createElement(View));
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  if ("submit" in asked) {
    void stream.submit(asked.submit, { multitaskStrategy: "enqueue", ...asked.options });
  }
  if ("respond" in asked) void stream.respond(asked.respond);
}
process.exit(0);
