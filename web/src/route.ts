// The place in the app, in the query of the address: `?thread=...&assistant=...&view=inbox`.
import { useCallback, useSyncExternalStore } from "react";

export interface Place { thread: string | null; assistant: string | null; view: "chat" | "inbox" }

export function parse(query: string): Place {
  const fields = new URLSearchParams(query);
  const thread = fields.get("thread");
  return {
    thread: thread !== null && /^[0-9a-f-]{36}$/i.test(thread) ? thread : null,
    assistant: fields.get("assistant"),
    view: fields.get("view") === "inbox" ? "inbox" : "chat",
  };
}

export function format(place: Partial<Place>): string {
  const fields = new URLSearchParams();
  if (place.assistant) fields.set("assistant", place.assistant);
  if (place.thread) fields.set("thread", place.thread);
  if (place.view === "inbox") fields.set("view", "inbox");
  return `?${fields.toString()}`;
}

const moved = new EventTarget();

function subscribe(listen: () => void): () => void {
  moved.addEventListener("moved", listen);
  addEventListener("popstate", listen);
  return () => {
    moved.removeEventListener("moved", listen);
    removeEventListener("popstate", listen);
  };
}

let embedder: ((place: Partial<Place>) => void) | null = null;

/** Let another page decide where to go: its address is its own. */
export function setEmbedder(move: ((place: Partial<Place>) => void) | null): void {
  embedder = move;
}

export function go(place: Partial<Place>, replace = false): void {
  if (embedder !== null) {
    embedder(place);
    return;
  }
  history[replace ? "replaceState" : "pushState"](null, "", format(place));
  moved.dispatchEvent(new Event("moved"));
}

export function usePlace(): Place {
  const query = useSyncExternalStore(subscribe, useCallback(() => location.search, []));
  return parse(query);
}
