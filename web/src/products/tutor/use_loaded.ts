// Something that is read from the server, and read again when asked.
import { useCallback, useEffect, useState } from "react";

export interface Loaded<T> { value: T | null; problem: unknown; reload: () => Promise<void> }

/** Read with `read`, which must be the same function at each drawing, and again if `version` changes. */
export function useLoaded<T>(read: () => Promise<T>, version: unknown = null): Loaded<T> {
  const [value, setValue] = useState<T | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const reload = useCallback(async () => {
    try {
      setValue(await read());
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, [read]);
  useEffect(() => {
    const timer = setTimeout(() => void reload(), 0);
    return () => clearTimeout(timer);
  }, [reload, version]);
  return { value, problem, reload };
}
