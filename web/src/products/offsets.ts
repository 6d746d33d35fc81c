/** Convert an offset in characters, as the server counts them, into one of JavaScript's units. */
export function toUnits(text: string, offset: number): number {
  let units = 0;
  for (let left = offset; left > 0 && units < text.length; left--) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  }
  return units;
}
