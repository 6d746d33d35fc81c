// A project as it is now: read once, then followed.
import { useCallback, useEffect, useRef, useState } from "react";
import { follow } from "../../event-stream";
import * as client from "./client";

const POLL_MS = 4_000;

export interface Project {
  progress: client.Progress | null;
  written: client.Written | null;
  isLost: boolean;
  problem: unknown;
  /** Whether a request to change the project is on its way. */
  isActing: boolean;
  act: (action: client.Action, limits?: Record<string, number>) => Promise<void>;
  refresh: () => Promise<void>;
}

export function useProject(id: string): Project {
  const [progress, setProgress] = useState<client.Progress | null>(null);
  const [written, setWritten] = useState<client.Written | null>(null);
  const [isLost, setLost] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const [isActing, setActing] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const busy = useRef(false);

  const take = useCallback((found: client.Progress) => {
    // An event may be older than an answer that came meanwhile.
    setProgress((old) => (old !== null && old.updated_at > found.updated_at ? old : found));
  }, []);

  const refresh = useCallback(async () => {
    try {
      const found = await client.progress(id);
      setProgress(found);
      setProblem(null);
      setLost(false);
      setAttempt((n) => n + 1);
    } catch (error) {
      setProblem(error);
    }
  }, [id]);

  useEffect(() => {
    const timer = setTimeout(() => void refresh(), 0);
    return () => clearTimeout(timer);
  }, [refresh]);

  const status = progress?.status;
  const isActive = status !== undefined && client.isActive(status);
  useEffect(() => {
    if (!isActive) return;
    return followed(id, take, setLost, refresh);
  }, [id, isActive, refresh, take]);

  // An event may be the first to say that the project has ended.
  const isOver = status !== undefined && !isActive;
  useEffect(() => {
    if (!isOver) return;
    let isGone = false;
    client.report(id).then(
      (found) => {
        if (!isGone) setWritten(found);
      },
      (error: unknown) => {
        if (!isGone) setProblem(error);
      },
    );
    return () => {
      isGone = true;
    };
  }, [id, isOver, attempt]);

  const act = useCallback(
    async (action: client.Action, limits?: Record<string, number>) => {
      if (busy.current) return;
      busy.current = true;
      setActing(true);
      setProblem(null);
      try {
        setProgress(await client.act(id, action, limits));
        await refresh();
      } catch (error) {
        // The project may have gone on meanwhile; what it is now says more than the refusal.
        await refresh();
        setProblem(error);
      } finally {
        busy.current = false;
        setActing(false);
      }
    },
    [id, refresh],
  );

  return { progress, written, isLost, problem, isActing, act, refresh };
}

/** Follow the run of a project, and ask now and then what no event says, such as its end. */
function followed(
  id: string,
  take: (found: client.Progress) => void,
  setLost: (isLost: boolean) => void,
  refresh: () => Promise<void>,
): () => void {
  let stop: (() => void) | null = null;
  const gone = new AbortController();
  let isOpening = false;
  const open = async () => {
    if (stop !== null || isOpening) return;
    isOpening = true;
    try {
      const path = await client.streamOf(id);
      if (gone.signal.aborted) return;
      if (path !== null) {
        stop = follow({
          path,
          after: "",
          onEvent: (event) => {
            if (event.name === "custom") take(JSON.parse(event.data) as client.Progress);
          },
          onConnection: (connection) => {
            setLost(connection === "lost");
            if (connection === "refused") stop = null;
          },
          onEnd: () => {
            stop = null;
            void refresh();
            return false;
          },
        });
      }
    } catch {
      setLost(true);
    } finally {
      isOpening = false;
    }
  };
  const timer = setInterval(() => {
    if (document.hidden) return;
    void refresh();
    void open();
  }, POLL_MS);
  void open();
  return () => {
    gone.abort();
    clearInterval(timer);
    stop?.();
  };
}
