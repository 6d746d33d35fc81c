// A client of @langchain/langgraph-sdk that streams a new run and reconnects by itself.
//
// Arguments: the server's URL, the graph, the input as JSON.
// Output:    a line for each event: {"id", "event", "data"}.
import { createRequire } from "node:module";

// The client that comes with the hook.
const hook = createRequire(import.meta.url).resolve("@langchain/react");
const { Client } = createRequire(hook)("@langchain/langgraph-sdk");

const [apiUrl, graph, input] = process.argv.slice(2);
const client = new Client({ apiUrl });
const { thread_id } = await client.threads.create();
const options = { input: JSON.parse(input), streamMode: ["custom"], streamResumable: true };
for await (const event of client.runs.stream(thread_id, graph, options)) {
  // The client makes an event without a name of a heartbeat.
  if (event.event) console.log(JSON.stringify(event));
}
