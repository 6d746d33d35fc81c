// The parts of a message, as LangChain, OpenAI and Anthropic write them.
import type { Fields } from "../api";

export interface Source {
  url: string;
  title: string;
}

export type Block =
  | { kind: "text"; text: string; sources: Source[] }
  | { kind: "reasoning"; text: string }
  | { kind: "image" | "audio" | "video" | "file"; url: string; mime: string; name: string }
  | { kind: "other"; type: string; value: Fields };

/** Parts that are calls of tools, which a message has beside its content too, or that say nothing to a person. */
const LEFT_OUT = new Set([
  "tool_call", "tool_use", "tool_call_chunk", "input_json_delta", "invalid_tool_call", "function_call", "redacted_thinking",
  "server_tool_call", "server_tool_use", "server_tool_call_chunk", "server_tool_result", "web_search_tool_result",
  "web_search_call", "code_interpreter_call", "compaction",
]);

/** Read the content of a message. Text that follows text is one block. */
export function blocksOf(content: unknown, kwargs: Fields): Block[] {
  const found: Block[] = [];
  const thought = kwargs.reasoning_content;
  if (typeof thought === "string" && thought !== "") found.push({ kind: "reasoning", text: thought });
  const parts = Array.isArray(content) ? (content as unknown[]) : [content];
  for (const part of parts) {
    const block = typeof part === "string" ? text(part, []) : isFields(part) ? read(part) : null;
    if (block === null) continue;
    const last = found.at(-1);
    if (block.kind === "text" && last?.kind === "text") {
      last.text += block.text;
      last.sources.push(...block.sources);
    } else if (block.kind === "reasoning" && last?.kind === "reasoning") {
      // A stream may repeat in one place what the other has.
      if (last.text !== block.text) last.text += `\n\n${block.text}`;
    } else {
      found.push(block);
    }
  }
  return found.filter((block) => (block.kind !== "text" && block.kind !== "reasoning") || block.text.trim() !== "");
}

function text(value: string, sources: Source[]): Block {
  return { kind: "text", text: value, sources };
}

function read(part: Fields): Block | null {
  const type = String(part.type ?? "");
  if (LEFT_OUT.has(type)) return null;
  switch (type) {
    case "text":
    case "output_text":
    case "input_text":
      return text(str(part.text), sourcesOf(part.annotations ?? part.citations));
    case "text-plain":
      return media("file", { ...part, source_type: str(part.text) === "" ? part.source_type : "text" });
    case "refusal":
      return text(str(part.refusal), []);
    case "reasoning":
      return { kind: "reasoning", text: str(part.reasoning) || summary(part.summary) || str(part.text) };
    case "thinking":
      return { kind: "reasoning", text: str(part.thinking) };
    case "reasoning_content":
      return { kind: "reasoning", text: str(fields(part.reasoning_content).text) };
    case "image_url":
    case "input_image":
      return media("image", typeof part.image_url === "string" ? { url: part.image_url } : fields(part.image_url));
    case "input_audio": {
      const audio = fields(part.input_audio);
      return media("audio", { data: audio.data, mime_type: `audio/${str(audio.format) || "wav"}` });
    }
    case "image":
    case "audio":
    case "video":
    case "file":
      return media(type, part);
    case "document":
      return media("file", part);
    case "media":
      return media(kindOf(str(part.mime_type)), part);
    case "non_standard": {
      // LangChain wraps what is not of its own kinds.
      const inner = fields(part.value);
      if (inner.type === undefined || inner.type === type) return { kind: "other", type, value: inner };
      return read(inner);
    }
    default:
      return { kind: "other", type, value: part };
  }
}

const USUAL = { image: "image/png", audio: "audio/wav", video: "video/mp4", file: "application/octet-stream" };

type Media = keyof typeof USUAL;

function kindOf(mime: string): Media {
  const kind = mime.split("/")[0];
  return kind === "image" || kind === "audio" || kind === "video" ? kind : "file";
}

/** Read a file, which is written in one of many ways: its bytes in base64, its text, or its address. */
function media(kind: Media, part: Fields): Block {
  const source = { ...fields(part.file), ...fields(part.source), ...part };
  const meta = { ...fields(part.metadata), ...fields(part.extras) };
  const given = str(source.mime_type) || str(source.media_type) || str(source.mimeType);
  const mime = /^[\w.+-]+\/[\w.+-]+$/.test(given) ? given : USUAL[kind];
  const name = [source.filename, source.name, source.title, meta.filename, meta.name, meta.title].map(str).find((each) => each !== "");
  const data = str(source.base64) || str(source.data);
  const isText = str(part.source_type) === "text" || str(fields(part.source).type) === "text";
  const url =
    str(source.url) || str(source.file_data) ||
    (isText
      ? `data:${mime};charset=utf-8,${encodeURIComponent(str(source.text) || data)}`
      : data.startsWith("data:") ? data : data === "" ? "" : `data:${mime};base64,${data}`);
  return { kind, url, mime, name: name ?? (str(source.file_id) || str(source.id)) };
}

function sourcesOf(value: unknown): Source[] {
  const found = new Map<string, Source>();
  for (const each of Array.isArray(value) ? (value as unknown[]).map(fields) : []) {
    const cited = { ...each, ...fields(each.url_citation) };
    const url = str(cited.url);
    const title = str(cited.title) || str(cited.document_title) || str(cited.cited_text).slice(0, 120) || url;
    if (title !== "") found.set(url || title, { url, title });
  }
  return [...found.values()];
}

function summary(value: unknown): string {
  return Array.isArray(value) ? (value as unknown[]).map((each) => str(fields(each).text)).join("\n\n") : "";
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function fields(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function str(value: unknown): string {
  return typeof value === "string" ? value : "";
}
