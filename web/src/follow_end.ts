// Keep the end of a conversation in sight while it grows, unless the person has scrolled away.
import { useCallback, useEffect, useRef, type RefObject } from "react";

const NEAR = 80;
/** The share of the window below the end that shows the product's view, as in `.conversation-end`. */
const BELOW = 0.4;

interface Following {
  scroller: RefObject<HTMLDivElement | null>;
  /** The end of the messages and questions. */
  end: RefObject<HTMLDivElement | null>;
  /** What stands below it: the product's view. */
  below: RefObject<HTMLDivElement | null>;
  onScroll: () => void;
}

export function useFollowEnd(...changes: unknown[]): Following {
  const scroller = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const follow = useCallback(() => {
    if (isFollowing.current) end.current?.scrollIntoView({ block: "end" });
  }, []);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  useEffect(follow, changes);
  useEffect(() => {
    if (below.current === null) return;
    const observer = new ResizeObserver(follow);
    observer.observe(below.current);
    return () => observer.disconnect();
  }, [follow]);
  const onScroll = useCallback(() => {
    const box = scroller.current;
    if (box === null || end.current === null) return;
    const room = Math.min(below.current?.offsetHeight ?? 0, innerHeight * BELOW);
    const gap = end.current.getBoundingClientRect().top - (box.getBoundingClientRect().bottom - room);
    isFollowing.current = Math.abs(gap) < NEAR;
  }, []);
  return { scroller, end, below, onScroll };
}
