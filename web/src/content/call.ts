// The calls of tools in a message.
import type { Fields } from "../api";
import { blocksOf, fields, isFields, str, type Block } from "./block";

export interface ToolCall {
  id: string;
  name: string;
  /** Arguments; as text while they stream in, and if they are no JSON. */
  args: Fields | string;
  result?: ToolResult;
}

export interface ToolResult {
  blocks: Block[];
  isError: boolean;
}

interface CallLike {
  tool_calls?: unknown;
  tool_call_chunks?: unknown;
  invalid_tool_calls?: unknown;
  content?: unknown;
}

/** Read the calls of a message: whole ones, those that still stream in, and those that the provider has run itself. */
export function callsOf(message: CallLike): ToolCall[] {
  const found = new Map<string, ToolCall>();
  const add = (call: Fields, args: unknown) => {
    const key = str(call.id) || `#${found.size}`;
    if (found.has(key) || (str(call.name) === "" && str(call.id) === "")) return;
    found.set(key, { id: str(call.id), name: str(call.name), args: isFields(args) ? args : str(args) });
  };
  for (const call of list(message.tool_calls)) add(call, call.args);
  for (const call of list(message.invalid_tool_calls)) add(call, call.args);
  // The arguments of a whole call are read already; a part of one has the text.
  for (const chunk of list(message.tool_call_chunks)) {
    const known = found.get(str(chunk.id));
    if (known === undefined) add(chunk, chunk.args);
    else if (isFields(known.args) && Object.keys(known.args).length === 0) known.args = str(chunk.args);
  }
  for (const part of list(message.content)) {
    if (part.type === "server_tool_call" || part.type === "server_tool_use") add(part, part.args ?? part.input);
    const call = found.get(str(part.tool_call_id) || str(part.tool_use_id));
    if (call === undefined || !/_tool_result$/.test(str(part.type))) continue;
    call.result = { blocks: outputOf(part.output ?? part.content), isError: part.status === "error" };
  }
  return [...found.values()];
}

function outputOf(output: unknown): Block[] {
  if (typeof output === "string") return blocksOf(output, {});
  return [{ kind: "text", text: JSON.stringify(output ?? null, null, 2), sources: [] }];
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as unknown[]).map(fields) : [];
}
