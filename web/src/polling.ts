import { useEffect, useRef, useState } from "react";

/** Repeat `work`, one after the other, while the page is visible, and at once when it comes back or is online again. */
export function usePolling(work: () => Promise<void>, everyMs: number, isOn = true): void {
  const latest = useRef(work);
  useEffect(() => {
    latest.current = work;
  }, [work]);
  useEffect(() => {
    if (!isOn) return;
    let isRunning = false;
    const run = () => {
      if (document.hidden || isRunning) return;
      isRunning = true;
      void latest.current().finally(() => {
        isRunning = false;
      });
    };
    const timer = setInterval(run, everyMs);
    document.addEventListener("visibilitychange", run);
    addEventListener("online", run);
    addEventListener("pageshow", run);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", run);
      removeEventListener("online", run);
      removeEventListener("pageshow", run);
    };
  }, [everyMs, isOn]);
}

/** Return whether the page is visible, or was so less than `graceMs` ago. */
export function useVisible(graceMs: number): boolean {
  const [isVisible, setVisible] = useState(true);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => setVisible(false), graceMs);
      else setVisible(true);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [graceMs]);
  return isVisible;
}
