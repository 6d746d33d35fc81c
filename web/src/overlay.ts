// What covers the page, such as the menu of a phone: it has the focus, and gives it back.
import { useEffect, type RefObject } from "react";

/** From this width on, nothing covers the page. */
const WIDE = "(min-width: 761px)";

/** While `box` is open, keep the focus in it. Escape, or a window that becomes wide, closes it. */
export function useOverlay(box: RefObject<HTMLElement | null>, isOpen: boolean, onClose: () => void): void {
  useEffect(() => {
    const opened = box.current;
    if (!isOpen || opened === null) return;
    const before = document.activeElement;
    const others = [...(opened.parentElement?.children ?? [])].filter((each) => each !== opened);
    const cover = (isCovered: boolean) => others.forEach((each) => each.toggleAttribute("inert", isCovered));
    const wide = matchMedia(WIDE);
    const onKey = (event: KeyboardEvent) => {
      // A dialog or a list of actions in it closes first.
      if (event.key === "Escape" && opened.querySelector(":popover-open, dialog[open]") === null) onClose();
    };
    cover(true);
    opened.querySelector<HTMLElement>("button")?.focus();
    addEventListener("keydown", onKey);
    wide.addEventListener("change", onClose);
    return () => {
      cover(false);
      removeEventListener("keydown", onKey);
      wide.removeEventListener("change", onClose);
      if (before instanceof HTMLElement) before.focus();
    };
    // `onClose` is new at each drawing of the shell.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [box, isOpen]);
}
