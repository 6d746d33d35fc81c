// What is sent while the server does not answer is held, and sent when it does.
import { useEffect, useMemo, useRef } from "react";
import { runs, type Fields, type Run } from "./api";
import { inputOf } from "./pending";
import { isOffline } from "./problems";

const AGAIN_MS = 2_000;

export interface Holding {
  /**
   * Send something, again and again while the server does not answer.
   *
   * @param send rejects with an error of the connection if it is not known whether the server has it
   * @param known returns what a former attempt has made, whose answer was lost
   * @param onWait called with the error before each pause
   */
  hold: <T>(send: () => Promise<T>, known: () => Promise<T | undefined>, onWait: (error: unknown) => void) => Promise<T>;
  /** Let what is held fail. */
  giveUp: () => void;
}

/** Return the run that was started with one of these messages, if the server has it. */
export async function runWith(threadId: string, messages: Fields[]): Promise<Run | undefined> {
  const ids = new Set(messages.map((each) => each.id));
  return (await runs(threadId, 10)).find((run) => inputOf(run).some((each) => ids.has(each.id)));
}

/** Hold what is sent until the server answers, the person gives it up, or the view is gone. */
export function useHolding(): Holding {
  const over = useRef(new AbortController());
  const holding = useMemo<Holding>(
    () => ({
      hold: async (send, known, onWait) => {
        const { signal } = over.current;
        // A function, because it changes while this waits.
        const isOver = () => signal.aborted;
        let work = send;
        for (;;) {
          try {
            return await work();
          } catch (error) {
            if (!isOffline(error) || isOver()) throw error;
            onWait(error);
            await pause(signal);
            if (isOver()) throw error;
            work = async () => (await known()) ?? send();
          }
        }
      },
      giveUp: () => {
        over.current.abort();
        over.current = new AbortController();
      },
    }),
    [],
  );
  useEffect(() => holding.giveUp, [holding]);
  return holding;
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, AGAIN_MS);
    addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}
