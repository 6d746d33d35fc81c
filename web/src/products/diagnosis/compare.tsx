// What became of the investigation between two moments.
import { useEffect, useState, type ReactNode } from "react";
import { Drawer } from "../../drawer";
import { explain } from "../../problems";
import * as client from "./client";
import { causesOf, concluded, type CauseChange, type Diff } from "./diff";
import { measures, number } from "./measures";
import { named, testName, w } from "./words";

interface Props {
  id: string;
  /** The moments to begin with, and the last one. */
  from: number;
  to: number;
  last: number;
  onClose: () => void;
}

export function Compare({ id, last, onClose, ...given }: Props) {
  const [from, setFrom] = useState(given.from);
  const [to, setTo] = useState(given.to);
  const { found, problem } = useDiff(id, from, to);
  return (
    <Drawer title={w("compare")} onClose={onClose}>
      <div className="row wrap moments">
        <At label={w("fromEvent")} value={from} last={last} onChange={setFrom} />
        <At label={w("toEvent")} value={to} last={last} onChange={setTo} />
      </div>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      {found === null && problem === null && <p className="meta" role="status">{w("comparing")}</p>}
      {found !== null && <Changes {...found} />}
    </Drawer>
  );
}

function At({ label, value, last, onChange }: { label: string; value: number; last: number; onChange: (seq: number) => void }) {
  const [text, setText] = useState(String(value));
  return (
    <label className="field">
      <span>{label}</span>
      <input
        type="number"
        min={0}
        max={last}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          const seq = Number(event.target.value);
          if (event.target.value !== "" && Number.isInteger(seq) && seq >= 0 && seq <= last) onChange(seq);
        }}
      />
    </label>
  );
}

interface Found { diff: Diff; before: client.State; after: client.State }

function useDiff(id: string, from: number, to: number) {
  const [found, setFound] = useState<(Found & { key: string }) | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const key = `${from} ${to}`;
  useEffect(() => {
    let isGone = false;
    // The states have the words of what has changed.
    Promise.all([client.diff(id, from, to), client.state(id, from), client.state(id, to)]).then(
      ([diff, before, after]) => {
        if (isGone) return;
        setFound({ diff, before, after, key: `${from} ${to}` });
        setProblem(null);
      },
      (error: unknown) => {
        if (!isGone) setProblem(error);
      },
    );
    return () => {
      isGone = true;
    };
  }, [from, id, to]);
  return { found: found?.key === key ? found : null, problem };
}

function Changes({ diff, before, after }: Found) {
  const causes = causesOf(diff, before, after);
  const sources = Object.entries(diff.sources.added);
  const gone = Object.entries(diff.sources.removed);
  const observed = Object.values(diff.observations.added);
  const events = Object.entries(diff.events);
  if (events.length === 0 && causes.length === 0) return <p className="hint">{w("same")}</p>;
  return (
    <div className="stack changes">
      {diff.conclusion !== undefined && (
        <Part title={w("conclusion_drawn")}>
          <p><Pair before={concluded(diff.conclusion.before, before)} after={concluded(diff.conclusion.after, after)} show={String} /></p>
        </Part>
      )}
      {causes.length > 0 && (
        <Part title={w("causes")}>
          <ul className="plain rows">{causes.map((each) => <CauseRow key={each.id} cause={each} />)}</ul>
        </Part>
      )}
      {sources.length + gone.length > 0 && (
        <Part title={w("sources")}>
          <ul className="plain stack tight">
            {sources.map(([id, each]) => (
              <li key={id}><span className="badge good">{w("isNew")}</span> {each.name} <span className="meta">{measures(each)}</span></li>
            ))}
            {gone.map(([id, each]) => (
              <li key={id}><span className="badge bad">{w("isGone")}</span> {each.name} <span className="meta">{measures(each)}</span></li>
            ))}
          </ul>
        </Part>
      )}
      {observed.length > 0 && <Observed quotes={observed.map((each) => each.quote)} />}
      {diff.notes.length > 0 && (
        <Part title={w("notes")}>
          <ul className="plain stack tight">{diff.notes.map((each) => <li key={each.seq}>{each.author}: {each.text}</li>)}</ul>
        </Part>
      )}
      <Part title={w("log")}>
        <ul className="plain tags">
          {events.map(([type, count]) => <li key={type}>{named(type)} {count > 0 ? "+" : "−"}{number(Math.abs(count))}</li>)}
        </ul>
      </Part>
    </div>
  );
}

const FEW = 5;

function Observed({ quotes }: { quotes: string[] }) {
  const [isAll, setAll] = useState(false);
  return (
    <Part title={`${w("observedNew")} (${number(quotes.length)})`}>
      <ul className="plain stack tight">
        {(isAll ? quotes : quotes.slice(0, FEW)).map((each, i) => <li key={i}><code>{each}</code></li>)}
      </ul>
      {!isAll && quotes.length > FEW && <button className="small" onClick={() => setAll(true)}>{w("more")}</button>}
    </Part>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return <section className="stack tight" aria-label={title}><h3>{title}</h3>{children}</section>;
}

function CauseRow({ cause }: { cause: CauseChange }) {
  return (
    <li className="stack tight">
      <span className="row top">
        <span className="grow">{cause.statement}</span>
        {cause.change !== "changed" && (
          <span className={cause.change === "added" ? "badge good" : "badge bad"}>{w(cause.change === "added" ? "isNew" : "isGone")}</span>
        )}
      </span>
      <span className="row wrap meta">
        <Pair before={cause.confidence[0]} after={cause.confidence[1]} show={(share) => `${w("confidence")} ${Math.round(share * 100)} %`} />
        <Pair before={cause.status[0]} after={cause.status[1]} show={named} />
      </span>
      {cause.tests.length > 0 && (
        <ul className="plain meta">
          {cause.tests.map(({ name, before, after }) => (
            <li key={name}>{testName(name)}: <Pair before={before} after={after} show={named} /></li>
          ))}
        </ul>
      )}
    </li>
  );
}

/** A value before and after; once if it stays the same. */
function Pair<T>({ before, after, show }: { before: T | undefined; after: T | undefined; show: (value: T) => string }) {
  const [old, now] = [before, after].map((each) => (each === undefined ? undefined : show(each)));
  if (old === undefined || now === undefined || old === now) return <span>{now ?? old}</span>;
  return <span>{old} <Arrow /> <strong>{now}</strong></span>;
}

function Arrow() {
  return <><span aria-hidden="true">→</span><span className="hidden">{w("becomes")}</span></>;
}
