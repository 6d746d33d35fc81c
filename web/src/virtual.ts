// Lists that render only what is near the view.
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { flushSync } from "react-dom";

const OVERSCAN = 900;

export interface Slice {
  /** The first item to render, and the first after it that is not. */
  start: number;
  end: number;
  /** Height of the items before and after, in pixels. */
  before: number;
  after: number;
}

/** Return the slice of items that touch the pixels from `top` to `bottom`. */
export function slice(heights: number[], top: number, bottom: number): Slice {
  let at = 0;
  let start = 0;
  while (start < heights.length && at + (heights[start] ?? 0) < top) at += heights[start++] ?? 0;
  const before = at;
  let end = start;
  while (end < heights.length && at < bottom) at += heights[end++] ?? 0;
  let after = 0;
  for (const height of heights.slice(end)) after += height;
  return { start, end, before, after };
}

const same = (a: Slice, b: Slice) =>
  a.start === b.start && a.end === b.end && a.before === b.before && a.after === b.after;

/**
 * Return the slice of a list to render, as its scroller moves and its items change their heights.
 *
 * The list holds a spacer, the items with `data-key`, and a spacer. The browser's own scroll anchoring
 * keeps the view still when an item turns out to have another height than assumed.
 *
 * @param keys of all items
 * @param assumed height in pixels of an item that was not rendered yet
 */
export function useSlice(
  keys: string[],
  assumed: number,
  scroller: RefObject<HTMLElement | null>,
  list: RefObject<HTMLElement | null>,
): Slice {
  const heights = useRef(new Map<string, number>());
  const latest = useRef(keys);
  // The end of a conversation is shown first.
  const [shown, setShown] = useState<Slice>(() => {
    const start = Math.max(0, keys.length - 12);
    return { start, end: keys.length, before: start * assumed, after: 0 };
  });
  const update = useCallback(() => {
    const box = scroller.current;
    const items = list.current;
    if (box === null || items === null) return;
    const offset = items.getBoundingClientRect().top - box.getBoundingClientRect().top;
    const all = latest.current.map((key) => heights.current.get(key) ?? assumed);
    const next = slice(all, -offset - OVERSCAN, box.clientHeight - offset + OVERSCAN);
    setShown((old) => (same(old, next) ? old : next));
  }, [assumed, list, scroller]);
  useLayoutEffect(() => {
    latest.current = keys;
    update();
  }, [keys, update]);
  useEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    box.addEventListener("scroll", update, { passive: true });
    const sizes = new ResizeObserver(update);
    sizes.observe(box);
    return () => {
      box.removeEventListener("scroll", update);
      sizes.disconnect();
    };
  }, [scroller, update]);
  useEffect(() => {
    const sizes = new ResizeObserver((entries) => {
      for (const { target, borderBoxSize } of entries) {
        const key = (target as HTMLElement).dataset.key;
        const height = borderBoxSize[0]?.blockSize ?? 0;
        // An item that has just been removed or hidden has no height.
        if (key !== undefined && height > 0) heights.current.set(key, height);
      }
      update();
    });
    for (const item of list.current?.querySelectorAll(":scope > [data-key]") ?? []) sizes.observe(item);
    return () => sizes.disconnect();
  }, [keys, list, shown.end, shown.start, update]);
  const isPrinting = usePrinting();
  return isPrinting ? { start: 0, end: keys.length, before: 0, after: 0 } : shown;
}

/** Return whether the page is being printed: paper has no view. */
function usePrinting(): boolean {
  const [isPrinting, setPrinting] = useState(false);
  useEffect(() => {
    // The browser prints what is there when the event has been handled.
    const begin = () => flushSync(() => setPrinting(true));
    const end = () => setPrinting(false);
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => {
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
    };
  }, []);
  return isPrinting;
}
