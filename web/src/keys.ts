/** Return whether a key belongs to an input method. Safari says that it has ended before the key that ends it. */
export function isComposing(event: KeyboardEvent): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return event.isComposing || event.keyCode === 229;
}
