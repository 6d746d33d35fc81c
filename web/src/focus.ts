// Where the focus goes when what has it leaves the conversation.
import { useLayoutEffect, useMemo, type RefObject } from "react";
import type { MessageActions } from "./message";

const BOX = ".below textarea:not([readonly])";

/** Take the focus from the composer to the question that hides it, and back. It is taken from nowhere else. */
export function useFocus(page: RefObject<HTMLElement | null>, isAsked: boolean): void {
  useLayoutEffect(() => {
    const below = page.current?.querySelector(".below");
    const activeElement = focused(page.current);
    const isLost = document.activeElement === document.body;
    if (isAsked && below?.contains(activeElement) === true) {
      page.current?.querySelector<HTMLElement>(".questions")?.focus({ preventScroll: true });
    } else if (!isAsked && isLost) page.current?.querySelector<HTMLElement>(BOX)?.focus();
  }, [isAsked, page]);
}

/** After a message was sent again the focus is in the composer, and after a step between versions at its button. */
export function useActions(page: RefObject<HTMLElement | null>, actions: MessageActions): MessageActions {
  return useMemo(
    () => ({
      ...actions,
      edit: async (id, text) => {
        const isSent = await actions.edit(id, text);
        if (isSent) page.current?.querySelector<HTMLElement>(BOX)?.focus();
        return isSent;
      },
      show: (version) => {
        const button = focused(page.current);
        const at = messagesIn(page.current).findIndex((each) => each.contains(button));
        const label = button?.getAttribute("aria-label") ?? "";
        actions.show(version);
        // The other version is another message, in the same place.
        requestAnimationFrame(() => {
          const steps = [...(messagesIn(page.current)[at]?.querySelectorAll<HTMLButtonElement>(".versions button:enabled") ?? [])];
          (steps.find((each) => each.ariaLabel === label) ?? steps[0])?.focus({ preventScroll: true });
        });
      },
    }),
    [actions, page],
  );
}

function focused(page: HTMLElement | null): Element | null {
  return (page?.getRootNode() as Document | ShadowRoot | undefined)?.activeElement ?? null;
}

function messagesIn(page: HTMLElement | null): Element[] {
  return [...(page?.querySelectorAll("li.message") ?? [])];
}
