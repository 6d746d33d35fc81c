// Uploads of this tab. They go on when the documents are closed, and are known after a reload.
import { useSyncExternalStore } from "react";
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
const LEAVE_MS = 2_000;
// At once; the server reads one document at a time.
const MOST = 2;

let uploads: Upload[] = restored();
const listeners = new Set<() => void>();
const queue: Upload[] = [];
let running = 0;
// A page that is left aborts its requests. The server goes on, and the next page shows it.
let isLeaving = false;
addEventListener("beforeunload", () => {
  isLeaving = true;
  // The person may stay.
  setTimeout(() => {
    isLeaving = false;
  }, LEAVE_MS);
});

function restored(): Upload[] {
  try {
    const names = JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as unknown;
    return Array.isArray(names) ? names.map((name) => ({ name: String(name), state: "reading", done: 0 })) : [];
  } catch {
    return [];
  }
}

function change(next: Upload[]): void {
  uploads = next;
  const names = next.filter((each) => each.state === "reading").map((each) => each.name);
  sessionStorage.setItem(KEY, JSON.stringify(names));
  for (const each of listeners) each();
}

function set(name: string, changes: Partial<Upload>): void {
  change(uploads.map((each) => (each.name === name ? { ...each, ...changes } : each)));
}

export function useUploads(): Upload[] {
  return useSyncExternalStore(
    (listen) => {
      listeners.add(listen);
      return () => listeners.delete(listen);
    },
    () => uploads,
  );
}

/** Store files. A name that is taken is asked about first; a file that is on its way is not sent twice. */
export function add(files: File[]): void {
  for (const file of files) {
    const known = uploads.find((each) => each.name === file.name);
    if (known?.state === "reading" || known?.state === "asking") continue;
    const made: Upload = { name: file.name, state: "reading", done: 0, file };
    change([...uploads.filter((each) => each.name !== file.name), made]);
    queue.push(made);
  }
  work();
}

/** Replace the document whose name is taken. */
export function replace(upload: Upload): void {
  if (upload.file === undefined || upload.state !== "asking") return;
  set(upload.name, { state: "reading" });
  void send(upload.file);
}

export function retry(upload: Upload): void {
  if (upload.file !== undefined) add([upload.file]);
}

export function dismiss(name: string): void {
  change(uploads.filter((each) => each.name !== name));
}

/** Compare with what the server says; what it neither reads nor has is lost. */
export function compare(found: client.Listed): void {
  const stored = new Set(found.documents.map((each) => each.name));
  const reloaded = uploads.filter((each) => each.file === undefined && each.state !== "stored");
  for (const { name, done } of reloaded) {
    const share = found.uploading[name];
    if (share !== undefined) {
      if (share !== done) set(name, { state: "reading", done: share });
    } else if (stored.has(name)) set(name, { state: "stored", done: 1 });
    else set(name, { state: "lost" });
  }
}

function work(): void {
  while (running < MOST && queue.length > 0) {
    const next = queue.shift();
    if (next?.file === undefined) continue;
    running++;
    void begin(next.file).finally(() => {
      running--;
      work();
    });
  }
}

async function begin(file: File): Promise<void> {
  try {
    if ((await client.find(file.name)) !== undefined) set(file.name, { state: "asking" });
    else await send(file);
  } catch (problem) {
    if (!isLeaving) set(file.name, { state: "failed", problem });
  }
}

async function send(file: File): Promise<void> {
  try {
    const stored = await client.store(file, (done) => set(file.name, { done }));
    const others = (await client.list(null)).documents;
    const twin = others.find((each) => each.document_id === stored.document_id && each.name !== stored.name);
    set(file.name, { state: "stored", done: 1, twin: twin?.name });
  } catch (problem) {
    if (!isLeaving) set(file.name, { state: "failed", problem });
  }
}
