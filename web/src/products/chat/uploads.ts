// Documents on their way. They go on when the list is closed, and are known after a reload.
import { Uploading, useUploading } from "../uploading";
import * as client from "./documents-client";

export interface Upload {
  name: string;
  state: "asking" | "reading" | "stored" | "failed" | "lost";
  done: number;
  problem?: unknown;
  /** The name of another document with the same content. */
  twin?: string | undefined;
  /** The file; missing after a reload. */
  file?: File;
}

const KEY = "threadhold-uploads";

const uploads = new Uploading<Upload>((each) => each.name, restored(), (list) => {
  const names = list.filter((each) => each.state === "reading").map((each) => each.name);
  sessionStorage.setItem(KEY, JSON.stringify(names));
});

function restored(): Upload[] {
  try {
    const names = JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as unknown;
    return Array.isArray(names) ? names.map((name) => ({ name: String(name), state: "reading", done: 0 })) : [];
  } catch {
    return [];
  }
}

export const useUploads = (): Upload[] => useUploading(uploads);

/** Store files. A name that is taken is asked about first; a file that is on its way is not sent twice. */
export function add(files: File[]): void {
  for (const file of files) {
    const known = uploads.find(file.name);
    if (known?.state === "reading" || known?.state === "asking") continue;
    uploads.put({ name: file.name, state: "reading", done: 0, file });
    uploads.start(
      async () => {
        if ((await client.find(file.name)) !== undefined) uploads.set(file.name, { state: "asking" });
        else await send(file);
      },
      (problem) => uploads.set(file.name, { state: "failed", problem }),
    );
  }
}

/** Replace the document whose name is taken. */
export function replace({ name, file, state }: Upload): void {
  if (file === undefined || state !== "asking") return;
  uploads.set(name, { state: "reading" });
  uploads.start(() => send(file), (problem) => uploads.set(name, { state: "failed", problem }));
}

export function retry(upload: Upload): void {
  if (upload.file !== undefined) add([upload.file]);
}

export function dismiss(name: string): void {
  uploads.keep((each) => each.name !== name);
}

/** Compare with what the server says; what it neither reads nor has is lost. */
export function compare(found: client.Listed): void {
  const stored = new Set(found.documents.map((each) => each.name));
  const reloaded = uploads.all().filter((each) => each.file === undefined && each.state !== "stored");
  for (const { name, done } of reloaded) {
    const share = found.uploading[name];
    if (share !== undefined) {
      if (share !== done) uploads.set(name, { state: "reading", done: share });
    } else if (stored.has(name)) uploads.set(name, { state: "stored", done: 1 });
    else uploads.set(name, { state: "lost" });
  }
}

async function send(file: File): Promise<void> {
  const stored = await client.store(file, (done) => uploads.set(file.name, { done }));
  const others = (await client.list(null)).documents;
  const twin = others.find((each) => each.document_id === stored.document_id && each.name !== stored.name);
  uploads.set(file.name, { state: "stored", done: 1, twin: twin?.name });
}
