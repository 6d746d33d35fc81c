// The candidates of a thread: sort, export, accept, reject.
import { useState } from "react";
import { explain } from "../../problems";
import { sorted, type Candidate, type Found, type Order, type Verdict } from "./candidate";
import { CandidateRow } from "./candidate_row";
import { Progress } from "./progress";
import * as requests from "./requests";
import { w } from "./words";

interface Props {
  threadId: string;
  found: Found;
  /** The numbers that commands use, by key. */
  numbers: ReadonlyMap<string, number>;
  readOnly: boolean;
  onChange: (found: Found) => void;
}

const FIRST = 5;
const ORDERS: Order[] = ["best", "name", "region", "industry"];

export function Candidates({ threadId, found, numbers, readOnly, onChange }: Props) {
  const [order, setOrder] = useState<Order>("best");
  const [pending, setPending] = useState<string | null>(null);
  const [isWhole, setWhole] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const act = async (name: string, work: () => Promise<unknown>) => {
    if (pending !== null) return;
    setPending(name);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error);
    }
    setPending(null);
  };
  const decide = (key: string, verdict: Verdict | null) =>
    void act(key, async () => onChange(await requests.feedback(threadId, key, verdict)));
  const row = (each: Candidate) => (
    <CandidateRow key={each.key} candidate={each} number={numbers.get(each.key)} pending={pending} readOnly={readOnly} onDecide={decide} />
  );
  return (
    <section className="card stack icp-candidates" aria-label={w("candidates")}>
      <header className="row wrap">
        <h2>{w("candidates")}</h2>
        <span className="meta grow">
          {found.candidates.length < found.total && `${found.candidates.length} ${w("of")} `}{found.total} {w("shownOf")}
        </span>
        <label className="row meta">
          {w("sortBy")}
          <select className="small" value={order} onChange={(event) => setOrder(event.target.value as Order)}>
            {ORDERS.map((each) => <option key={each} value={each}>{w(each)}</option>)}
          </select>
        </label>
        <button className="small" disabled={pending === "export"} onClick={() => void act("export", () => requests.exportScores(threadId))}>
          {w("exportCsv")}
        </button>
      </header>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      <Progress found={found} />
      <ol className="plain rows">
        {sorted(found.candidates, order).slice(0, isWhole ? undefined : FIRST).map(row)}
      </ol>
      {found.candidates.length > FIRST && (
        <button className="small icp-all" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? w("showFirst") : `${w("showAll")} (${found.candidates.length})`}
        </button>
      )}
      {found.rejected.length > 0 && (
        <details>
          <summary>{w("rejectedList")} ({found.rejected.length})</summary>
          <ul className="plain rows">
            {found.rejected.map(row)}
          </ul>
        </details>
      )}
    </section>
  );
}
