// Requests about a session, and what the server answers.
import * as api from "../../api";
import { put } from "../put";
import type { Diff } from "./diff";
import type { Event, Source, State } from "./session";
import type { Range, Slice } from "./slices";
import { measures } from "./measures";
import { w } from "./words";

export type * from "./session";

const PAGE = 200;

/** Return the state after an event; without `seq`, the current one. */
export async function state(id: string, seq?: number): Promise<State> {
  const moment = seq === undefined ? "" : `?at_seq=${seq}`;
  return (await api.call<{ state: State }>("GET", `/diagnosis/${id}/state${moment}`)).state;
}

export const events = (id: string, after: number, limit = PAGE): Promise<{ events: Event[]; last_seq: number }> =>
  api.call("GET", `/diagnosis/${id}/events?after=${after}&limit=${limit}`);

/** Add a file to the sources, and say how much of it is sent. */
export async function addSource(
  id: string, file: File, onSent: (done: number) => void, signal: AbortSignal,
): Promise<{ source: Source; isNew: boolean }> {
  const path = `/diagnosis/${id}/sources/${encodeURIComponent(file.name)}`;
  const { body, status } = await put<{ source: Source }>(path, file, onSent, signal);
  return { source: body.source, isNew: status === 201 };
}

/** Return the characters of a source from `start` to before `end`. */
export const part = (id: string, source: string, { start, end }: Range): Promise<Slice> =>
  api.call("GET", `/diagnosis/${id}/sources/${encodeURIComponent(source)}?start=${start}&end=${end}`);

const COPY_MS = 120_000;

/** Begin a conversation with the session as it was after an event, and return its thread. */
export async function branch(id: string, seq: number): Promise<string> {
  // A large session takes its time, and a second attempt would make a second one.
  const signal = AbortSignal.timeout(COPY_MS);
  const made = await api.call<{ thread_id: string }>("POST", `/diagnosis/${id}/branch`, { at_seq: seq }, signal);
  return made.thread_id;
}

export const diff = async (id: string, from: number, to: number): Promise<Diff> =>
  (await api.call<{ diff: Diff }>("GET", `/diagnosis/${id}/diff?from_seq=${from}&to_seq=${to}`)).diff;

export const reportPath = (id: string): string => `/diagnosis/${id}/report`;
export const streamPath = (id: string): string => `/diagnosis/${id}/events`;

const GIST = 300;

/** Cut the texts of an event: a source may have a million characters. */
export function shortened(event: Event): Event {
  const data = Object.fromEntries(
    Object.entries(event.data).map(([key, value]) => [
      key,
      typeof value === "string" && value.length > GIST ? `${value.slice(0, GIST)}…` : value,
    ]),
  );
  return { ...event, data };
}

/** Say an event in one line. */
export function told(event: Event): string {
  const { data } = event;
  const text = (name: string) => (typeof data[name] === "string" ? data[name] : "");
  switch (event.type) {
    case "session_opened":
      return text("title");
    case "source_added":
      return `${text("name")}, ${measures({ kind: text("kind"), format: text("format"), lines: Number(data.lines), chars: Number(data.chars) })}`;
    case "session_branched":
      return `${w("fromEventOf")} ${String(data.seq)}`;
    case "observation_recorded":
      return [text("service"), text("text")].filter(Boolean).join(": ");
    case "hypothesis_proposed":
      return text("statement");
    case "investigation_started":
      return text("hypothesis");
    case "evidence_recorded":
      return `${text("hypothesis")} · ${text("test")} · ${text("quote")}`;
    case "test_recorded":
      return `${text("hypothesis")} · ${text("test")}: ${text("outcome")}. ${text("reason")}`;
    case "note_added":
      return `${text("author")}: ${text("text")}`;
    case "conclusion_drawn":
      return Array.isArray(data.missing) ? data.missing.map(String).join(", ") : "";
    default:
      return text("text");
  }
}
