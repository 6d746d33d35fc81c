// Requests about a graph's assistants: those that people have made, and the schemas of the graph.
import { call, type Assistant, type Fields } from "../api";
import type { Schema } from "../schema-form/schema";

export interface Schemas {
  input_schema?: Schema | null;
  output_schema?: Schema | null;
  state_schema?: Schema | null;
  config_schema?: Schema | null;
  context_schema?: Schema | null;
}

export const schemas = (assistant: string): Promise<Schemas> => call("GET", `/assistants/${assistant}/schemas`);

export const ofGraph = (graph: string): Promise<Assistant[]> =>
  call("POST", "/assistants/search", { graph_id: graph, limit: 100, sort_by: "name", sort_order: "asc" });

export const create = (graph: string, name: string, context: Fields): Promise<Assistant> =>
  call("POST", "/assistants", { graph_id: graph, name, context });

/** Change an assistant: it gets a new version. */
export const change = (id: string, name: string, context: Fields): Promise<Assistant> =>
  call("PATCH", `/assistants/${id}`, { name, context });

/** The keys of a thread's metadata that say with what its next runs are started. `assistant_id` is of its last run. */
const CONTEXT = "context";
const ASSISTANT = "next_assistant";

/** Return with what the runs of a thread are started: the id of an assistant, and a context of its own. */
export function settingsOf(metadata: Fields): { assistant: string | undefined; context: Fields | undefined } {
  const { assistant_id: last, [ASSISTANT]: id = last, [CONTEXT]: context } = metadata;
  return {
    assistant: typeof id === "string" ? id : undefined,
    context: typeof context === "object" && context !== null ? (context as Fields) : undefined,
  };
}

export interface Settings {
  assistant: Assistant;
  context: Fields | undefined;
}

/** Return the metadata of a thread whose runs have these settings. A context that it has had goes. */
export const metadataOf = ({ assistant, context }: Settings): Fields => ({
  [ASSISTANT]: assistant.assistant_id,
  [CONTEXT]: context ?? null,
});
