// How a message was checked, in words. Pure functions.
import { locale } from "../../i18n";
import { w, type Word } from "./words";

export interface Check { checked_by: string[]; degraded: string | null }

const CHECKERS: Record<string, Word> = { model: "byModel", rules: "byRules", harper: "byHarper" };
const LIMITS: Record<string, Word> = {
  timeout: "timeout", unreachable: "unreachable", refused: "refused", length: "length", invalid: "invalid", busy: "busy",
};

/** Name the checkers in the locale of the page. */
export function checkedBy(check: Check): string {
  if (check.checked_by.length === 0) return w("unchecked");
  const names = check.checked_by.map((each) => {
    const word = CHECKERS[each];
    return word === undefined ? each : w(word);
  });
  return `${w("checkedBy")} ${new Intl.ListFormat(locale()).format(names)}.`;
}

/** Say why a check is incomplete; null if it is complete. */
export function limits(check: Check): string | null {
  if (check.degraded === null) return null;
  return w(LIMITS[check.degraded] ?? "limited");
}

export function isComplete(check: Check): boolean {
  return check.degraded === null && check.checked_by.length > 0;
}
