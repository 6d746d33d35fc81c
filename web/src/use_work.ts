// One request at a time: a second click does nothing.
import { useRef, useState } from "react";

interface Work { isWorking: boolean; problem: unknown; act: (work: () => Promise<void>) => Promise<void> }

export function useWork(): Work {
  const busy = useRef(false);
  const [isWorking, setWorking] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const act = async (work: () => Promise<void>) => {
    if (busy.current) return;
    busy.current = true;
    setWorking(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error);
    }
    busy.current = false;
    setWorking(false);
  };
  return { isWorking, problem, act };
}
