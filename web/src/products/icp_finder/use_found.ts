// The candidates of a thread, read again while the finder works.
import { useCallback, useEffect, useState } from "react";
import { isWorking, type Found } from "./candidate";
import * as requests from "./requests";

const EVERY_MS = 2_500;

interface Loaded {
  found: Found | null;
  problem: unknown;
  reload: () => void;
  setFound: (found: Found) => void;
}

/** Load the candidates; again if `search` changes, at the end of a run, and while a job works. */
export function useFound(threadId: string, search: string, isBusy: boolean): Loaded {
  const [found, setFound] = useState<Found | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const load = useCallback(async () => {
    try {
      setFound(await requests.candidates(threadId));
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, [threadId]);
  useEffect(() => {
    const timer = setTimeout(() => void load(), 0);
    return () => clearTimeout(timer);
  }, [load, search, isBusy]);
  const isMoving = isBusy || isWorking(found?.job ?? null);
  useEffect(() => {
    if (!isMoving) return;
    const timer = setInterval(() => {
      if (!document.hidden) void load();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [isMoving, load]);
  return { found, problem, reload: () => void load(), setFound };
}
