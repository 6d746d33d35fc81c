// What happened in the incident, in its own order.
import { locale } from "../../i18n";
import type { Entry, State } from "./client";
import { named, w } from "./words";

const KEPT = 80;

interface Props { state: State; onMoment: (seq: number) => void }

export function Timeline({ state, onMoment }: Props) {
  if (state.timeline.length === 0) return <p className="hint">{w("noTimeline")}</p>;
  return (
    <>
      {state.timeline.length >= KEPT && <p className="meta">{w("older")}</p>}
      <ol className="plain rows timeline">
        {state.timeline.map((each) => <Row key={each.seq} entry={each} onMoment={onMoment} />)}
      </ol>
    </>
  );
}

function Row({ entry, onMoment }: { entry: Entry; onMoment: (seq: number) => void }) {
  const when = new Date(entry.when);
  return (
    <li className={entry.kind}>
      <time className="meta" dateTime={entry.when}>{when.toLocaleDateString(locale())} {when.toLocaleTimeString(locale())}</time>
      <div>
        <span className={entry.kind === "observed" ? "badge accent" : "badge"}>{named(entry.kind)}</span>{" "}
        <span>{entry.text}</span>
      </div>
      <button className="quiet small seq" aria-label={`${w("goTo")} ${entry.seq}`} onClick={() => onMoment(entry.seq)}>
        {entry.seq}
      </button>
    </li>
  );
}
