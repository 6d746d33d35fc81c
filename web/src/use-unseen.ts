// The conversations that were answered while the person looked at another one.
import { useState } from "react";
import type { Thread } from "./api";

interface Known {
  key: string;
  busy: ReadonlySet<string>;
  unseen: ReadonlySet<string>;
}

/** Return the ids of threads whose run has ended since the page was loaded, and that were not opened since. */
export function useUnseen(threads: Thread[], current: string | null): ReadonlySet<string> {
  const [known, setKnown] = useState<Known>({ key: "", busy: new Set(), unseen: new Set() });
  const ids = threads.filter((each) => each.status === "busy").map((each) => each.thread_id);
  const key = [current, ...ids].join();
  if (key === known.key) return known.unseen;
  const busy = new Set(ids);
  const ended = [...known.busy].filter((id) => !busy.has(id));
  const unseen = new Set([...known.unseen, ...ended].filter((id) => id !== current));
  setKnown({ key, busy, unseen });
  return unseen;
}
