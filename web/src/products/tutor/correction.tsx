// The correction of a message: the difference, each mistake explained, and how it was checked.
import type { Fields } from "../../api";
import type { MessageProps } from "../props";
import { checkedBy, isComplete, limits, type Check } from "./check";
import { pieces, type Issue } from "./pieces";
import "./styles.css";
import { typeName, w } from "./words";

interface Corrected extends Partial<Check> {
  message_id: string;
  original: string;
  corrected: string;
  issues: Issue[];
  explanation: string;
}

export default function Correction({ message, values, stored }: MessageProps) {
  const list = (Array.isArray(values.corrections) ? values.corrections : []) as Corrected[];
  const found = list.find((each) => each.message_id === message.id);
  if (found === undefined) {
    const check = checkOf(message.id, stored) ?? (message.extra.check as Check | undefined);
    return check === undefined ? null : <Clean check={check} />;
  }
  // Corrections that an earlier version stored do not say who checked.
  const names = found.checked_by ?? [...new Set(found.issues.flatMap((each) => each.sources))];
  return (
    <section className="correction stack tight" aria-label={w("correction")}>
      <Difference original={found.original} issues={found.issues} />
      <ul className="plain stack tight meta tutor-issues">
        {found.issues.map((each) => <Mistake key={`${each.start}-${each.end}`} issue={each} />)}
      </ul>
      {!isSum(found) && <p className="hint">{found.explanation}</p>}
      <Checked check={{ checked_by: names, degraded: found.degraded ?? null }} />
    </section>
  );
}

/** Find the check of a message in the state: the message itself is from before the check. */
function checkOf(id: string, stored: Fields): Check | undefined {
  const messages = (Array.isArray(stored.messages) ? stored.messages : []) as Fields[];
  const found = messages.find((each) => each.id === id)?.additional_kwargs as Fields | undefined;
  return found?.check as Check | undefined;
}

/** Say that a message is right, but only if its check was complete. */
function Clean({ check }: { check: Check }) {
  return (
    <div className="end">
      {isComplete(check) && <p><span className="badge good">✓ {w("noMistakes")}</span></p>}
      <Checked check={check} />
    </div>
  );
}

function Difference({ original, issues }: { original: string; issues: Issue[] }) {
  return (
    <p>
      {pieces(original, issues).map((piece, i) => {
        if (piece.kind === "removed") return <del key={i}>{piece.text}</del>;
        if (piece.kind === "added") return <ins key={i}>{piece.text}</ins>;
        return <span key={i}>{piece.text}</span>;
      })}
    </p>
  );
}

function Mistake({ issue }: { issue: Issue }) {
  return (
    <li>
      <strong>{typeName(issue.type)}</strong> <span>{issue.message}</span>
    </li>
  );
}

/** Return whether the explanation only repeats the messages of the mistakes. */
function isSum(found: Corrected): boolean {
  return found.issues.every((each) => found.explanation.includes(each.message)) &&
    found.issues.reduce((left, each) => left.replace(each.message, ""), found.explanation).trim() === "";
}

function Checked({ check }: { check: Check }) {
  const problem = limits(check);
  return (
    <p className="meta">
      {checkedBy(check)}
      {problem !== null && <span className="tutor-limits"> {problem}</span>}
    </p>
  );
}
