// The changes of the user's threads, as the server tells them: one stream for all tabs of a browser.
import * as api from "./api";
import { follow, type ServerEvent } from "./event-stream";
import { token } from "./token";

/** A thread that has changed, or whose runs have. */
export type Change = api.Thread & {
  /** The ids of its runs that are not over. */
  active: string[];
};

export interface Listener {
  /** Called when changes may have been missed: read again what is shown. */
  onReset: () => void;
  onThread?: (thread: Change) => void;
  onDeleted?: (id: string) => void;
  /** Called when changes cannot be heard, and with null when they can. */
  onProblem?: (problem: unknown) => void;
}

// Where another tab has the stream, this one hears nothing at first.
const ELSEWHERE_MS = 200;
// The server sends a heartbeat each 5 s.
const SILENT_MS = 16_000;
// A server that restarts is back before anybody needs to know.
const PATIENCE_MS = 3_000;

const listeners = new Set<Listener>();
let hub: Hub | null = null;

/** Hear of changes. @returns a function that ends it. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  if (hub === null) hub = new Hub();
  else if (hub.isHearing) queueMicrotask(() => listeners.has(listener) && listener.onReset());
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    hub?.close();
    hub = null;
  };
}

/**
 * The tab that holds a lock has the stream, and passes its events on. A hidden tab gives both back. Where there
 * are no locks (pages without TLS), each tab has a stream of its own.
 */
class Hub {
  isHearing = false;
  // Tabs with other tokens are other users.
  readonly #name = `threadhold ${api.apiUrl} ${token() ?? ""}`;
  readonly #channel = new BroadcastChannel(this.#name);
  #end: (() => void) | null = null;
  #trouble: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.#channel.onmessage = ({ data }) => this.deliver(data as ServerEvent);
    document.addEventListener("visibilitychange", this.#look);
    this.#look();
  }

  close(): void {
    document.removeEventListener("visibilitychange", this.#look);
    clearTimeout(this.#trouble);
    this.#end?.();
    this.#channel.close();
  }

  deliver(event: ServerEvent): void {
    if (event.name === "ready") {
      this.isHearing = true;
      clearTimeout(this.#trouble);
      for (const each of listeners) each.onProblem?.(null);
    }
    if (event.name === "ready" || event.name === "overflow") for (const each of [...listeners]) each.onReset();
    else if (event.name === "thread") {
      const change = JSON.parse(event.data) as Change;
      for (const each of [...listeners]) each.onThread?.(change);
    } else if (event.name === "deleted") {
      const { thread_id } = JSON.parse(event.data) as { thread_id: string };
      for (const each of [...listeners]) each.onDeleted?.(thread_id);
    }
  }

  readonly #look = () => {
    if (document.hidden) {
      this.#end?.();
      this.#end = null;
    } else this.#end ??= this.#begin();
  };

  #begin(): () => void {
    // Pages without TLS have none, whatever the types say.
    const locks = navigator.locks as LockManager | undefined;
    if (locks === undefined) return this.#follow();
    const over = new AbortController();
    const elsewhere = setTimeout(() => this.deliver({ id: "", name: "ready", data: "" }), ELSEWHERE_MS);
    const lead = () =>
      new Promise<void>((resolve) => {
        clearTimeout(elsewhere);
        const end = this.#follow();
        over.signal.addEventListener("abort", () => {
          end();
          resolve();
        });
      });
    // Rejected if it ends while it waits for the lock.
    locks.request(this.#name, { signal: over.signal }, lead).catch(() => undefined);
    return () => {
      clearTimeout(elsewhere);
      over.abort();
    };
  }

  #follow(): () => void {
    return follow({
      path: "/threads/stream",
      after: "",
      silentMs: SILENT_MS,
      onEvent: (event) => {
        this.deliver(event);
        this.#channel.postMessage(event);
      },
      onConnection: (connection, problem) => {
        if (connection === "open") return;
        this.isHearing = false;
        clearTimeout(this.#trouble);
        const complain = () => listeners.forEach((each) => each.onProblem?.(problem));
        this.#trouble = setTimeout(complain, connection === "refused" ? 0 : PATIENCE_MS);
      },
    });
  }
}
