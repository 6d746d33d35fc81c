// What the whole page needs of the server: the assistants, and the user's threads as they change.
import { useCallback, useEffect, useState } from "react";
import * as api from "./api";
import { listen, type Change } from "./changes";
import { isArchived } from "./threads";

const HIDDEN = new Set(["enrichment"]);

export function useThreads(archived: boolean, limit: number) {
  const [assistants, setAssistants] = useState<api.Assistant[] | null>(null);
  const [threads, setThreads] = useState<api.Thread[] | null>(null);
  const [waiting, setWaiting] = useState<api.Thread[] | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const loadAssistants = useCallback(async () => {
    try {
      setAssistants((await api.assistants()).filter((each) => !HIDDEN.has(each.graph_id)));
    } catch (error) {
      setProblem(error);
    }
  }, []);
  const load = useCallback(async () => {
    try {
      const [found, open] = await Promise.all([api.threads(archived, limit), api.waiting()]);
      setThreads(found);
      setWaiting(open);
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, [archived, limit]);
  useEffect(() => {
    const first = setTimeout(() => void loadAssistants(), 0);
    return () => clearTimeout(first);
  }, [loadAssistants]);
  useEffect(
    () =>
      listen({
        onReset: () => void load(),
        onProblem: setProblem,
        onThread: (change) => {
          setThreads((old) => put(old, change, archived || !isArchived(change)));
          setWaiting((old) => put(old, change, change.status === "interrupted" && api.asks(change)));
        },
        onDeleted: (id) => {
          setThreads((old) => old?.filter((each) => each.thread_id !== id) ?? null);
          setWaiting((old) => old?.filter((each) => each.thread_id !== id) ?? null);
        },
      }),
    [archived, load],
  );
  const retry = useCallback(() => {
    if (assistants === null) void loadAssistants();
    void load();
  }, [assistants, load, loadAssistants]);
  return { assistants, threads, waiting, problem, retry };
}

/** Put a changed thread into a list in which the newest is first, or take it out. */
export function put(list: api.Thread[] | null, change: Change, belongs: boolean): api.Thread[] | null {
  if (list === null) return null;
  const old = list.find((each) => each.thread_id === change.thread_id);
  const others = list.filter((each) => each !== old);
  if (!belongs) return old === undefined ? list : others;
  const at = others.findIndex((each) => each.updated_at < change.updated_at);
  // A change does not say when its thread was made. Of an unknown one, it is the first.
  others.splice(at < 0 ? others.length : at, 0, { created_at: change.updated_at, ...old, ...change });
  return others;
}

/** Return a thread of the list, or ask the server for it: the list has only the newest. */
export function useThread(id: string | null, list: api.Thread[] | null): { thread: api.Thread | undefined; trouble: unknown } {
  const [asked, setAsked] = useState<{ id: string; thread?: api.Thread; trouble: unknown } | null>(null);
  const listed = list?.find((each) => each.thread_id === id);
  const isMissing = id !== null && list !== null && listed === undefined;
  useEffect(() => {
    if (!isMissing) return;
    let isGone = false;
    api.thread(id).then(
      (thread) => !isGone && setAsked({ id, thread, trouble: null }),
      (trouble: unknown) => !isGone && setAsked({ id, trouble }),
    );
    return () => {
      isGone = true;
    };
  }, [id, isMissing]);
  const found = asked?.id === id ? asked : null;
  return { thread: listed ?? found?.thread, trouble: listed === undefined ? (found?.trouble ?? null) : null };
}

/** Return who the user is; null until the server has answered, and if it does not say. */
export function useCaller(): api.Caller | null {
  const [caller, setCaller] = useState<api.Caller | null>(null);
  useEffect(() => {
    // Without the answer, only a name is missing.
    api.me().then(setCaller, () => undefined);
  }, []);
  return caller;
}
