// The slider that chooses the moment, and what can be done with it.
import { useState } from "react";
import { locale } from "../../i18n";
import { explain } from "../../problems";
import { go } from "../../route";
import * as client from "./client";
import { Compare } from "./compare";
import type { Session } from "./use-session";
import { w } from "./words";

export function Moment({ id, session, readOnly }: { id: string; session: Session; readOnly: boolean }) {
  const { events, last, moment, setMoment } = session;
  const shown = moment ?? last;
  const event = events.find((each) => each.seq === shown);
  const time = event === undefined ? "" : new Date(event.at).toLocaleString(locale());
  return (
    <section className="diagnosis-moment" aria-label={w("moment")}>
      <div className="row">
        <label className="grow" htmlFor="diagnosis-moment">
          {w("at")} {shown} {w("of")} {last} <span className="meta">{time}</span>
        </label>
        {moment === null ? (
          <span className="badge accent">{w("live")}</span>
        ) : (
          <button className="small" onClick={() => setMoment(null)}>{w("toLive")}</button>
        )}
      </div>
      <input
        id="diagnosis-moment"
        type="range"
        min={1}
        max={Math.max(1, last)}
        value={shown}
        aria-valuetext={`${w("at")} ${shown} ${w("of")} ${last}, ${time}`}
        onChange={(change) => setMoment(Number(change.target.value))}
      />
      <p className="meta" role="status">{moment === null ? "" : w("past")}</p>
      <Actions id={id} shown={shown} last={last} isNow={moment === null} readOnly={readOnly} />
    </section>
  );
}

interface ActionsProps { id: string; shown: number; last: number; isNow: boolean; readOnly: boolean }

function Actions({ id, shown, last, isNow, readOnly }: ActionsProps) {
  const [isOpen, setOpen] = useState(false);
  const [isBranching, setBranching] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const branch = async () => {
    setBranching(true);
    setProblem(null);
    try {
      go({ thread: await client.branch(id, shown), assistant: "diagnosis" });
    } catch (error) {
      setProblem(error);
    }
    setBranching(false);
  };
  return (
    <>
      <div className="row wrap">
        {!readOnly && (
          <button className="small" disabled={isBranching || shown < 1} title={w("branchHint")} onClick={() => void branch()}>
            {w(isBranching ? "branching" : "branch")}
          </button>
        )}
        <button className="small" onClick={() => setOpen(true)}>{w(isNow ? "compareBegin" : "compareNow")}</button>
      </div>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      {isOpen && <Compare id={id} from={isNow ? 0 : shown} to={last} last={last} onClose={() => setOpen(false)} />}
    </>
  );
}
