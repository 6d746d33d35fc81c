// What a test rests on, at its place in the source that it was read in.
import { Drawer } from "../../drawer";
import type { Evidence, Source } from "./client";
import { measures } from "./measures";
import { SourceText } from "./source-text";
import { w } from "./words";

interface Props { id: string; evidence: Evidence; source: Source | undefined; onClose: () => void }

export function EvidenceDrawer({ id, evidence, source, onClose }: Props) {
  return (
    <Drawer title={`${w("evidence")}, ${w(evidence.direction)}`} onClose={onClose}>
      {source === undefined ? (
        <>
          <p className="meta">{w("noSource")}</p>
          <blockquote className="excerpt"><mark>{evidence.quote}</mark></blockquote>
        </>
      ) : (
        <>
          <div>
            <strong>{source.name}</strong>
            <div className="meta">{measures(source)}</div>
          </div>
          <SourceText id={id} source={evidence.source} chars={source.chars} place={evidence} />
        </>
      )}
    </Drawer>
  );
}
