import { act, render } from "@testing-library/react";
import { useRef } from "react";
import { expect, it, vi } from "vitest";
import { useSlice } from "../src/virtual";

type Sizes = (entries: { target: Element; borderBoxSize: { blockSize: number }[] }[]) => void;

const KEYS = Array.from({ length: 200 }, (_, i) => `m${i}`);

function List() {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const shown = useSlice(KEYS, 100, scroller, list);
  return (
    <div ref={scroller}>
      <ol ref={list}>
        {KEYS.slice(shown.start, shown.end).map((key) => <li key={key} data-key={key} />)}
      </ol>
    </div>
  );
}

it("keeps the height of an item that is removed or hidden", () => {
  const observers: Sizes[] = [];
  vi.stubGlobal("ResizeObserver", class {
    constructor(sizes: Sizes) { observers.push(sizes); }
    observe() { return; }
    disconnect() { return; }
  });
  const { container } = render(<List />);
  const [box, list] = [container.querySelector("div > div"), container.querySelector("ol")];
  if (box === null || list === null) throw new Error("the list is not rendered");
  const report = (target: Element, blockSize: number) => ({ target, borderBoxSize: [{ blockSize }] });
  const scroll = (to: number) => {
    list.getBoundingClientRect = () => ({ top: -to }) as DOMRect;
    act(() => { box.dispatchEvent(new Event("scroll")); });
  };
  scroll(5000);
  const before = [...list.children];
  const observed = observers.at(-1);
  act(() => observed?.(before.map((each) => report(each, 100))));
  scroll(12000);
  // A browser reports no height for what is no longer rendered, and may do so after the scroll.
  act(() => observed?.(before.map((each) => report(each, 0))));
  expect(list.firstElementChild?.getAttribute("data-key")).toBe("m110");
  vi.unstubAllGlobals();
});
