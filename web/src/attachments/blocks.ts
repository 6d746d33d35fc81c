// Files as content blocks of a message, in LangChain's standard form.
import type { Fields } from "../api";

export const ACCEPTED = "image/*,audio/*,video/*,application/pdf,text/*,.md,.csv,.json,.xml,.yaml,.yml,.log";

const TEXT = /^text\/|^application\/(json|xml|yaml|x-yaml|javascript|sql)$/;
const TEXT_NAME = /\.(md|csv|json|xml|ya?ml|log|txt|py|ts|tsx|js|sql|toml|ini)$/i;

/**
 * Read a file as a content block.
 *
 * A text is a block of text with the file's name: models have no common block for text files.
 */
export async function blockOf(file: File): Promise<Fields> {
  if (isText(file)) return { type: "text", text: `${file.name}:\n\n${await file.text()}` };
  const type = ["image", "audio", "video"].find((each) => file.type.startsWith(`${each}/`)) ?? "file";
  const mime_type = file.type || "application/octet-stream";
  return { type, base64: await base64Of(file), mime_type, extras: { filename: file.name } };
}

/** Return the content of a message with a text and files. */
export function contentOf(text: string, files: Fields[]): string | Fields[] {
  return files.length === 0 ? text : [...(text === "" ? [] : [{ type: "text", text }]), ...files];
}

/** Return the part of a content that the person has written: its first text, and not those of files. */
export function writtenIn(content: unknown): string {
  const first = Array.isArray(content) ? (content as unknown[]).find(isWritten) : content;
  return typeof first === "string" ? first : first === undefined ? "" : String((first as Fields).text);
}

/** Return a content with another text, and all that it has beside. */
export function rewritten(content: unknown, text: string): unknown {
  if (!Array.isArray(content)) return text;
  const parts = content as unknown[];
  const at = parts.findIndex(isWritten);
  const made = { type: "text", text };
  return at < 0 ? [made, ...parts] : parts.map((each, i) => (i === at ? made : each));
}

function isWritten(part: unknown): boolean {
  return typeof part === "string" || (part as Fields | null)?.type === "text";
}

export function isText(file: File): boolean {
  return TEXT.test(file.type) || (file.type === "" && TEXT_NAME.test(file.name));
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const found = reader.result as string;
      resolve(found.slice(found.indexOf(",") + 1));
    };
    reader.onerror = () => reject(reader.error ?? new Error(file.name));
    reader.readAsDataURL(file);
  });
}

const REST = 64 * 1024;
const limit = Number(document.querySelector<HTMLMetaElement>('meta[name="threadhold-max-body"]')?.content);

/** How many bytes of JSON a message may have. Without a limit, the server decides. */
const ROOM = Number.isFinite(limit) && limit > 0 ? Math.max(0, limit - REST) : Infinity;

/** How many bytes of files a message may carry: base64 adds a third. */
export const LARGEST = Math.floor((ROOM * 3) / 4);

// A character is at most six bytes of JSON.
const WIDEST = 6;

/** Return whether a text is too long for a message. */
export function isTooLong(text: string, room = ROOM): boolean {
  return text.length * WIDEST > room && new TextEncoder().encode(JSON.stringify(text)).length > room;
}

export function sizeOf(files: File[]): number {
  return files.reduce((sum, each) => sum + each.size, 0);
}

/** Say a size, such as "1.4 MB". */
export function inBytes(size: number, language: string): string {
  const isLarge = size >= 1e6;
  const unit = isLarge ? "megabyte" : "kilobyte";
  return new Intl.NumberFormat(language, { style: "unit", unit, maximumFractionDigits: 1 }).format(size / (isLarge ? 1e6 : 1e3));
}
