import { useEffect, useState } from "react";

/**
 * Return whether the page is visible, or was so less than `graceMs` ago. Of a part of the page that is drawn for the
 * first time, it is false: React may throw the drawing away and begin anew.
 */
export function useVisible(graceMs: number): boolean {
  const [isVisible, setVisible] = useState(false);
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
