// A candidate: what it is, its score with evidence, and the person's decision.
import { hostOf, secure, type Candidate, type Verdict } from "./candidate";
import { Score } from "./score";
import { w, type Word } from "./words";

interface Props {
  candidate: Candidate;
  /** What commands call it, as in “reject 2”, if it is in the list that they mean. */
  number: number | undefined;
  /** What is being sent: the key of a candidate, or null. */
  pending: string | null;
  readOnly: boolean;
  onDecide: (key: string, verdict: Verdict | null) => void;
}

const DECIDED: Record<Verdict, Word> = { kept: "accepted", liked: "liked", rejected: "rejected" };
const STATUS: Record<string, Word> = { read: "read", unreadable: "unreadable", no_website: "noWebsite" };

export function CandidateRow({ candidate, number, pending, readOnly, onDecide }: Props) {
  const { verdict } = candidate;
  return (
    <li className="icp-row" data-key={candidate.key}>
      <div className="icp-company">
        <div className="icp-name">
          {number !== undefined && <span className="meta number"><span className="hidden">{w("number")} </span>{`${number}.`}</span>}
          <h3>{candidate.name}</h3>
        </div>
        <p className="meta">{[candidate.industry, candidate.region].filter(Boolean).join(" · ")}</p>
        <Site website={candidate.website} />
        <Contacts candidate={candidate} />
      </div>
      <Score candidate={candidate} />
      <div className="icp-decision">
        {verdict !== null && <span className={verdict === "rejected" ? "badge bad" : "badge good"}>{w(DECIDED[verdict])}</span>}
        {!readOnly && (
          <Buttons name={candidate.name} verdict={verdict} isSending={pending === candidate.key}
            onDecide={(wanted) => onDecide(candidate.key, wanted)} />
        )}
      </div>
    </li>
  );
}

function Site({ website }: { website: string | null }) {
  const link = secure(website);
  if (website === null) return null;
  if (link === null) return <p className="meta">{website}</p>;
  return <p className="meta"><a href={link} target="_blank" rel="noopener noreferrer">{hostOf(website)}</a></p>;
}

function Contacts({ candidate }: { candidate: Candidate }) {
  const { status, note, size, emails, phones } = candidate.enrichment;
  if (status === null) return null;
  const known = [size === null ? "" : `${size} ${w("people")}`, ...emails, ...phones].filter(Boolean);
  return (
    <p className="meta icp-contacts">
      {w(STATUS[status] ?? "notEnriched")}
      {known.length > 0 && `: ${known.join(" · ")}`}
      {status === "unreadable" && note !== null && `: ${note}`}
    </p>
  );
}

interface ButtonsProps {
  name: string;
  verdict: Verdict | null;
  isSending: boolean;
  onDecide: (verdict: Verdict | null) => void;
}

function Buttons({ name, verdict, isSending, onDecide }: ButtonsProps) {
  const offered: [Verdict | null, Word][] =
    verdict === null ? [["kept", "accept"], ["rejected", "reject"], ["liked", "more"]] : [[null, "undo"]];
  return (
    <div className="actions" role="group" aria-label={`${w("decide")}: ${name}`}>
      {offered.map(([wanted, word]) => (
        <button className="small" key={word} aria-label={`${w(word)}: ${name}`} disabled={isSending} onClick={() => onDecide(wanted)}>
          {w(word)}
        </button>
      ))}
    </div>
  );
}
