// A cited passage, in the text around it.
import { useEffect, useState } from "react";
import * as api from "../../api";
import { t } from "../../i18n";
import { Drawer } from "../../drawer";
import { toUnits } from "../offsets";
import type { Citation } from "./citation";
import { w } from "./words";

interface Part { number: number; section: string; page: number | null; text: string; start: number; end: number }

interface Props { citation: Citation; onClose: () => void }

export function Passage({ citation, onClose }: Props) {
  const parts = useParts(citation);
  const name = citation.path || citation.title;
  return (
    <Drawer title={citation.title || name} onClose={onClose}>
      <dl>
        <div><dt>{w("document")}</dt><dd>{name}</dd></div>
        {citation.section !== "" && <div><dt>{w("section")}</dt><dd>{citation.section}</dd></div>}
        {citation.page !== null && <div><dt>{w("page")}</dt><dd>{citation.page}</dd></div>}
      </dl>
      {parts === null ? (
        <p className="meta" role="status">{t("loading")}</p>
      ) : (
        <p className="meta">{w(parts.length === 0 ? "noContext" : "context")}</p>
      )}
      <blockquote className="excerpt">
        {(parts === null || parts.length === 0 ? [whole(citation)] : pieces(parts, citation)).map((each, i) =>
          each.isCited ? <mark key={i}>{each.text}</mark> : <span key={i}>{each.text}</span>,
        )}
      </blockquote>
    </Drawer>
  );
}

interface Piece { text: string; isCited: boolean }

function whole(citation: Citation): Piece {
  return { text: citation.text, isCited: true };
}

/** Return the text of neighbouring passages. They may overlap: offsets say where each one begins. */
export function pieces(parts: Part[], citation: Citation): Piece[] {
  const cited = parts.find((each) => each.start === citation.start && each.end === citation.end);
  if (cited === undefined) return [whole(citation)];
  const made: Piece[] = [];
  for (const part of parts) {
    if (part === cited) {
      made.push({ text: part.text, isCited: true });
      continue;
    }
    const isBefore = part.start < cited.start;
    const text = isBefore
      ? part.text.slice(0, toUnits(part.text, cited.start - part.start)).trimEnd()
      : part.text.slice(toUnits(part.text, cited.end - part.start)).trimStart();
    if (text !== "") made.push({ text: isBefore ? `${text}\n\n` : `\n\n${text}`, isCited: false });
  }
  return made;
}

/** Read the passages around a cited one; none if the document is not what it was. */
function useParts(citation: Citation): Part[] | null {
  const [parts, setParts] = useState<Part[] | null>(null);
  useEffect(() => {
    let isGone = false;
    const path = `/api/passages/${encodeURIComponent(citation.document_id)}?number=${citation.passage}`;
    api.call<{ passages: Part[] }>("GET", path).then(
      (found) => {
        const same = found.passages.some((each) => each.text === citation.text && each.start === citation.start);
        if (!isGone) setParts(same ? found.passages : []);
      },
      () => {
        if (!isGone) setParts([]);
      },
    );
    return () => {
      isGone = true;
    };
  }, [citation]);
  return parts;
}
