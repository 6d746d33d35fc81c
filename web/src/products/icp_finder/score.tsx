// A score and what it is made of.
import type { CSSProperties } from "react";
import { hostOf, partsOf, secure, type Candidate, type Evidence } from "./candidate";
import { partName, w } from "./words";

export function Score({ candidate }: { candidate: Candidate }) {
  const percent = Math.round(candidate.score * 100);
  return (
    <details className="icp-score">
      <summary>
        <i className="bar" style={{ "--part": candidate.score } as CSSProperties} />
        <strong className="number"><span className="hidden">{w("score")} </span>{percent}%</strong>
        <span className="meta">{w("why")}</span>
      </summary>
      <dl>
        {partsOf(candidate).map((each) => (
          <div key={each.part}>
            <dt>{partName(each.part)} <span className="number">{points(each.value)}</span></dt>
            <dd><Proof of={each.proof} /></dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function points(value: number): string {
  const rounded = Math.round(value * 100);
  return rounded < 0 ? `−${-rounded}` : `+${rounded}`;
}

function Proof({ of }: { of: Evidence | undefined }) {
  if (of === undefined) return <span className="hint">{w("unknown")}</span>;
  return <>{of.found} <span className="meta">({w("foundIn")} <Source of={of.source} />)</span></>;
}

function Source({ of }: { of: string }) {
  if (of === "register" || of === "web search") return w(of);
  if (of === "feedback") return w("feedbackSource");
  const link = secure(of);
  return link === null ? of : <a href={link} target="_blank" rel="noopener noreferrer">{hostOf(of)}</a>;
}
