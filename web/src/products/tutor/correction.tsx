// The tutor's correction of a message, inline.
import type { Fields } from "./api";
import { t } from "./i18n";
import type { Shown } from "./message";

interface Issue { start: number; end: number; original: string; replacement: string; message: string; sources: string[] }

export interface Piece { text: string; kind: "same" | "removed" | "added" }

/** Cut a text into what stays, what goes and what comes. Offsets are in code points. */
export function pieces(text: string, issues: Issue[]): Piece[] {
  const letters = Array.from(text);
  const found: Piece[] = [];
  let at = 0;
  for (const issue of [...issues].sort((a, b) => a.start - b.start)) {
    if (issue.start < at) continue;
    found.push({ text: letters.slice(at, issue.start).join(""), kind: "same" });
    found.push({ text: letters.slice(issue.start, issue.end).join(""), kind: "removed" });
    found.push({ text: issue.replacement, kind: "added" });
    at = issue.end;
  }
  found.push({ text: letters.slice(at).join(""), kind: "same" });
  return found.filter((each) => each.text !== "");
}

export function Correction({ message, values }: { message: Shown; values: Fields }) {
  const list = (Array.isArray(values.corrections) ? values.corrections : []) as Fields[];
  const found = list.find((each) => each.message_id === message.id);
  const check = (found ?? message.extra.check) as Fields | undefined;
  if (found === undefined) {
    // A check that is not complete proves nothing.
    const isClean = check !== undefined && check.degraded === null && check.checked_by !== undefined;
    return isClean ? <p className="meta end">{t("noMistakes")} {by(check)}</p> : null;
  }
  const issues = found.issues as Issue[];
  return (
    <section className="correction" aria-label={t("correction")}>
      <p>
        {pieces(String(found.original), issues).map((piece, i) =>
          piece.kind === "removed" ? <del key={i}>{piece.text}</del>
            : piece.kind === "added" ? <ins key={i}>{piece.text}</ins>
              : <span key={i}>{piece.text}</span>)}
      </p>
      <p className="hint">{String(found.explanation)}</p>
      <p className="meta">{by({ checked_by: found.checked_by ?? [...new Set(issues.flatMap((each) => each.sources))] })}</p>
    </section>
  );
}

function by(check: Fields): string {
  const names = Array.isArray(check.checked_by) ? check.checked_by : [check.checked_by];
  return `${t("checkedBy")} ${names.map(String).join(", ")}`;
}
