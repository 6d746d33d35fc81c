// How a source is told in a few words.
import { locale } from "../../i18n";
import type { Source } from "./session";
import { kindOf, w } from "./words";

/** Return the kind, the format and the size of a source. */
export function measures({ kind, format, lines, chars }: Pick<Source, "kind" | "lines" | "chars"> & { format?: string }): string {
  // Some formats only repeat the kind.
  const form = format === undefined || format === "" || format === kind ? [] : [format];
  return [
    kindOf(kind), ...form,
    `${number(lines)} ${w(lines === 1 ? "line" : "lines")}`,
    `${number(chars)} ${w(chars === 1 ? "character" : "characters")}`,
  ].join(" · ");
}

export const number = (value: number): string => value.toLocaleString(locale());
