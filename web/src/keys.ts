import type { KeyboardEvent as Pressed } from "react";

/** Return whether a key belongs to an input method. Safari says that it has ended before the key that ends it. */
function isComposing(event: KeyboardEvent): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return event.isComposing || event.keyCode === 229;
}

/** Make Enter send what a field has. With Shift it begins a line. */
export function onEnter(send: (field: HTMLTextAreaElement) => void) {
  return (event: Pressed<HTMLTextAreaElement>) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event.nativeEvent)) return;
    event.preventDefault();
    send(event.currentTarget);
  };
}
