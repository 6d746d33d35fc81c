// The slider that chooses the moment.
import { locale } from "../../i18n";
import type { Session } from "./use-session";
import { w } from "./words";

export function Moment({ session }: { session: Session }) {
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
    </section>
  );
}
