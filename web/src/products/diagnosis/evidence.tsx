// What a test rests on, in the source that it was read in.
import { useEffect, useState } from "react";
import { Drawer } from "../../drawer";
import { Excerpt } from "../excerpt";
import { textOf, type Evidence, type Source } from "./client";
import { w } from "./words";

interface Props { id: string; evidence: Evidence; source: Source | undefined; onClose: () => void }

export function EvidenceDrawer({ id, evidence, source, onClose }: Props) {
  const text = useText(id, source);
  return (
    <Drawer title={`${w("evidence")}, ${w(evidence.direction)}`} onClose={onClose}>
      <dl>
        <div><dt>{w("source")}</dt><dd>{source === undefined ? evidence.source : `${source.kind} ${source.name}`}</dd></div>
        <div><dt>{w("characters")}</dt><dd>{evidence.start}–{evidence.end}</dd></div>
      </dl>
      {text === undefined && <p className="meta" role="status">{w("loading")}</p>}
      {text === null && <p className="meta">{w("noSource")}</p>}
      <div className="source-text">
        {text ? (
          <Excerpt text={text} start={evidence.start} end={evidence.end} />
        ) : (
          <blockquote className="excerpt"><mark>{evidence.quote}</mark></blockquote>
        )}
      </div>
    </Drawer>
  );
}

/** Return the text of a source; undefined while it loads, null if it cannot be read. */
function useText(id: string, source: Source | undefined): string | null | undefined {
  const [text, setText] = useState<string | null | undefined>(source === undefined ? null : undefined);
  useEffect(() => {
    if (source === undefined) return;
    let isGone = false;
    textOf(id, source).then(
      (found) => {
        if (!isGone) setText(found === "" ? null : found);
      },
      () => {
        if (!isGone) setText(null);
      },
    );
    return () => {
      isGone = true;
    };
  }, [id, source]);
  return text;
}
