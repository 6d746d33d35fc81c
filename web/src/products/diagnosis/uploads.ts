// Files on their way to become sources of a session.
import { newId } from "../../ids";
import { ApiError } from "../../api";
import { Uploading, useUploading } from "../uploading";
import * as client from "./client";
import { w } from "./words";

export interface Upload {
  id: string;
  thread: string;
  file: File;
  state: "sending" | "stored" | "failed";
  /** The part that is sent, from 0 to 1. The server reads a file when it has all of it. */
  done: number;
  /** Whether it is a text that was too long for a message. */
  isText: boolean;
  problem?: unknown;
  /** What it has become. */
  source?: client.Source;
  /** Whether the session had it already. */
  isKnown?: boolean;
}

const uploads = new Uploading<Upload>((each) => each.id);
const stops = new Map<string, AbortController>();

export const useUploads = (thread: string): Upload[] => useUploading(uploads).filter((each) => each.thread === thread);

/** Begin to add files to a session. */
export function add(thread: string, files: File[], isText = false): void {
  for (const file of files) begin({ id: newId(), thread, file, state: "sending", done: 0, isText });
}

export function retry(upload: Upload): void {
  begin({ ...upload, state: "sending", done: 0, problem: undefined });
}

/** Forget an upload; one that is on its way is stopped. */
export function dismiss({ id }: Upload): void {
  stops.get(id)?.abort();
  uploads.keep((each) => each.id !== id);
}

/** Forget what was added to a session: a message has been sent that reads it. */
export function forget(thread: string): void {
  uploads.keep((each) => each.thread !== thread || each.state !== "stored");
}

function begin(upload: Upload): void {
  const { id, thread, file } = upload;
  const stop = new AbortController();
  stops.set(id, stop);
  uploads.put(upload);
  uploads.start(
    async () => {
      if (stop.signal.aborted) return;
      const { source, isNew } = await client.addSource(thread, file, (done) => uploads.set(id, { done }), stop.signal);
      uploads.set(id, { state: "stored", done: 1, source, isKnown: !isNew });
      stops.delete(id);
    },
    (problem) => uploads.set(id, { state: "failed", problem }),
  );
}

/** Return whether the same file may be taken the next time. */
export function mayPass(problem: unknown): boolean {
  const status = problem instanceof ApiError ? problem.status : 0;
  return status < 400 || status >= 500 || status === 401 || status === 429;
}

const BY_STATUS = { 0: "broken", 401: "signedOut", 403: "notYours", 404: "gone", 413: "tooLarge", 429: "busy", 503: "busy" } as const;
const PACKED = /packed with (\w+)/;

/** Say why a file was not added, and what to do. */
export function reason(problem: unknown): string {
  const status = problem instanceof ApiError ? problem.status : 0;
  if (Object.hasOwn(BY_STATUS, status)) return w(BY_STATUS[status as keyof typeof BY_STATUS]);
  const told = problem instanceof ApiError ? problem.message : "";
  if (status === 409) return problem instanceof ApiError && problem.body.error === "session_full" ? w("full") : w("closed");
  if (status === 422 && /is empty/.test(told)) return w("emptyFile");
  const packed = PACKED.exec(told)?.[1];
  if (packed !== undefined) return `${w("packed")} ${packed}. ${w("unpack")}`;
  return told === "" ? w("broken") : told;
}
