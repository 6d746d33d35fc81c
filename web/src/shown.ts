// A message as it is shown, from the hook or from a checkpoint.
import type { Fields } from "./api";
import { blocksOf, type Block } from "./content/block";
import { callsOf, type ToolCall } from "./content/call";
import { HIDDEN } from "./ids";

export interface Shown {
  id: string;
  role: "human" | "ai" | "tool" | "other";
  text: string;
  /** The parts of the content in their order, without calls of tools. */
  blocks: Block[];
  /** The tools that an answer calls, with their results once `paired` has found them. */
  toolCalls: ToolCall[];
  /** The call that a message of a tool answers. */
  toolCallId: string;
  /** The agent that has written an answer, or the tool. */
  name: string;
  /** Whether a tool has failed. */
  isError: boolean;
  extra: Fields;
  /** Whether its run was stopped or has failed before it was complete. */
  isUnfinished?: boolean;
}

interface MessageLike {
  id?: string | undefined;
  type?: unknown;
  name?: unknown;
  content?: unknown;
  getType?: () => string;
  additional_kwargs?: unknown;
  tool_calls?: unknown;
  tool_call_id?: unknown;
  status?: unknown;
}

const ROLES: Record<string, Shown["role"]> = {
  human: "human", HumanMessageChunk: "human", user: "human",
  ai: "ai", AIMessageChunk: "ai", assistant: "ai",
  tool: "tool", ToolMessageChunk: "tool", function: "tool",
};

const known = new WeakMap<object, Shown>();

/** Read a message of the hook, or one of a checkpoint. The same message gives the same object. */
export function shown(message: MessageLike | Fields, index: number): Shown {
  const found = message as MessageLike;
  const old = known.get(found);
  if (old !== undefined) return old;
  const role = ROLES[found.getType?.() ?? String(found.type)] ?? "other";
  const extra = (found.additional_kwargs ?? {}) as Fields;
  const made: Shown = {
    id: found.id ?? `#${index}`,
    role,
    text: textOf(found.content),
    blocks: blocksOf(found.content, extra),
    toolCalls: role === "ai" ? callsOf(found) : [],
    toolCallId: typeof found.tool_call_id === "string" ? found.tool_call_id : "",
    name: typeof found.name === "string" ? found.name : "",
    isError: found.status === "error",
    extra,
  };
  known.set(found, made);
  return made;
}

export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as (string | Fields)[])
    .map((part) => (typeof part === "string" ? part : typeof part.text === "string" ? part.text : ""))
    .join("");
}

/** Return whether there is something to show of a message. */
function isVisible(message: Shown): boolean {
  if (message.role === "other" || message.id.startsWith(HIDDEN)) return false;
  return message.blocks.length > 0 || message.toolCalls.length > 0 || message.role === "tool";
}

const answered = new WeakMap<Shown, { results: (Shown | undefined)[]; made: Shown }>();

/**
 * Return the messages that are shown, with the results of tools at their calls. A message whose results have not
 * changed since the last time is the same object.
 */
export function paired(messages: Shown[]): Shown[] {
  const results = new Map<string, Shown>();
  for (const each of messages) if (each.role === "tool" && each.toolCallId !== "") results.set(each.toolCallId, each);
  const used = new Set<Shown>();
  const made = messages.map((message) => {
    const found = message.toolCalls.map((call) => results.get(call.id));
    for (const each of found) if (each !== undefined) used.add(each);
    return found.some((each) => each !== undefined) ? withResults(message, found) : message;
  });
  return made.filter((each) => isVisible(each) && !used.has(each));
}

/** Return messages without the calls of tools that have succeeded, and without what then says nothing. */
export function withoutTools(messages: Shown[]): Shown[] {
  return messages.flatMap((message) => {
    const isDone = (call: ToolCall) => call.result !== undefined && !call.result.isError;
    if (message.role === "tool") return message.isError ? [message] : [];
    if (!message.toolCalls.some(isDone)) return [message];
    const made = { ...message, toolCalls: message.toolCalls.filter((call) => !isDone(call)) };
    return isVisible(made) ? [made] : [];
  });
}

function withResults(message: Shown, results: (Shown | undefined)[]): Shown {
  const old = answered.get(message);
  if (old?.results.every((each, i) => each === results[i]) === true) return old.made;
  const toolCalls = message.toolCalls.map((call, i) => {
    const result = results[i];
    return result === undefined ? call : { ...call, result: { blocks: result.blocks, isError: result.isError } };
  });
  const made = { ...message, toolCalls };
  answered.set(message, { results, made });
  return made;
}
