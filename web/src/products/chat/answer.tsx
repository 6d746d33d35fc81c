// An answer with its citations, which open their passages.
import { useMemo, useState, type MouseEvent } from "react";
import { Text } from "../../markdown";
import type { AnswerProps } from "../props";
import { annotate } from "./annotate";
import { notesOf, type Citation } from "./citation";
import { Passage } from "./passage";
import "./styles.css";
import { w } from "./words";

const NONE = { citations: [], unsupported: [], isIncomplete: false };

export default function Answer({ message, stored, values, isLast, growing }: AnswerProps) {
  const [open, setOpen] = useState<Citation | null>(null);
  const notes = useMemo(
    () => (growing ? NONE : notesOf(message, stored, values, isLast)),
    [growing, isLast, message, stored, values],
  );
  const plugins = useMemo(
    () => (growing ? undefined : annotate(message.text, notes, { source: w("source") })),
    [growing, message.text, notes],
  );
  const onClick = (event: MouseEvent) => {
    const number = (event.target as Element).closest<HTMLElement>("[data-cite]")?.dataset.cite;
    const cited = notes.citations.find((each) => String(each.number) === number);
    if (cited !== undefined) setOpen(cited);
  };
  return (
    <div className="chat-answer stack tight" onClick={onClick}>
      <Text text={message.text} growing={growing} {...(plugins === undefined ? {} : { plugins })} />
      {notes.isIncomplete && <p className="notice meta" role="note">{w("cut")}</p>}
      {notes.unsupported.length > 0 && (
        <p className="notice meta" role="note">
          {w(notes.unsupported.length === 1 ? "oneUnsupported" : "unsupportedSentences")}
        </p>
      )}
      {notes.citations.length > 0 && <Sources citations={notes.citations} />}
      {open !== null && <Passage citation={open} onClose={() => setOpen(null)} />}
    </div>
  );
}

function Sources({ citations }: { citations: Citation[] }) {
  return (
    <ul className="plain row wrap" aria-label={w("cited")}>
      {citations.map((each) => (
        <li key={each.number}>
          <button className="small chat-source" data-cite={each.number}>
            <span className="meta">{each.number}</span>
            <span className="clip">{[each.title || each.path, each.section].filter(Boolean).join(" · ")}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
