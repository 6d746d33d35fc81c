// A time that is to come, in words.
import { locale } from "../../i18n";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400], ["hour", 3_600], ["minute", 60]];

/** Say when something comes, such as "in 10 minutes". */
export function until(iso: string, now = Date.now()): string {
  const seconds = (Date.parse(iso) - now) / 1000;
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  for (const [unit, size] of UNITS) {
    if (seconds >= size) return format.format(Math.round(seconds / size), unit);
  }
  return format.format(1, "minute");
}
