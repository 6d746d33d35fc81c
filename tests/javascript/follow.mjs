// A client of @langchain/langgraph-sdk that follows a run and reconnects by itself. On a slow machine a
// server needs longer to start than its reconnections last, so each one tries three times.
//
// Arguments: the server's URL, the thread, the run, the id of the last event that it has.
// Output:    a line for each event: {"id", "event", "data"}.
import { createRequire } from "node:module";

// The client that comes with the hook.
const hook = createRequire(import.meta.url).resolve("@langchain/react");
const { Client } = createRequire(hook)("@langchain/langgraph-sdk");

const [apiUrl, threadId, runId, lastEventId] = process.argv.slice(2);
const client = new Client({ apiUrl, callerOptions: { maxRetries: 2 } });
for await (const event of client.runs.joinStream(threadId, runId, { lastEventId })) {
  // The client makes an event without a name of a heartbeat.
  if (event.event) console.log(JSON.stringify(event));
}
