// The event log, which follows the session and can be filtered.
import { useEffect, useMemo, useRef, useState } from "react";
import { locale } from "../../i18n";
import { told, type Event } from "./client";
import type { Session } from "./use-session";
import { named, w } from "./words";

const PAGE = 200;

/** Return the events of a kind whose words contain a text. */
export function matching(events: Event[], kind: string, text: string): Event[] {
  const wanted = text.trim().toLocaleLowerCase();
  return events.filter(
    (each) =>
      (kind === "" || each.type === kind) &&
      (wanted === "" || `${named(each.type)} ${told(each)}`.toLocaleLowerCase().includes(wanted)),
  );
}

export function Log({ session }: { session: Session }) {
  const { events, moment, setMoment } = session;
  const [kind, setKind] = useState("");
  const [text, setText] = useState("");
  const [count, setCount] = useState(PAGE);
  const end = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const kinds = useMemo(() => [...new Set(events.map((each) => each.type))].sort(), [events]);
  const found = useMemo(() => {
    const upTo = moment === null ? events : events.filter((each) => each.seq <= moment);
    return matching(upTo, kind, text);
  }, [events, kind, moment, text]);
  useEffect(() => {
    const list = end.current;
    if (list !== null && isAtEnd.current) list.scrollTop = list.scrollHeight;
  }, [found]);
  return (
    <>
      <div className="row wrap filters">
        <input
          className="grow"
          type="search"
          aria-label={w("filter")}
          placeholder={w("filter")}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <select aria-label={w("kind")} value={kind} onChange={(event) => setKind(event.target.value)}>
          <option value="">{w("all")}</option>
          {kinds.map((each) => <option key={each} value={each}>{named(each)}</option>)}
        </select>
      </div>
      {found.length > count && <button className="small" onClick={() => setCount(count + PAGE)}>{w("more")}</button>}
      {found.length === 0 && <p className="hint">{w("noEvents")}</p>}
      <div
        ref={end}
        className="log"
        tabIndex={0}
        role="log"
        aria-label={w("log")}
        onScroll={(event) => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        <ol className="plain rows">
          {found.slice(-count).map((each) => <Row key={each.seq} event={each} onMoment={setMoment} />)}
        </ol>
      </div>
    </>
  );
}

function Row({ event, onMoment }: { event: Event; onMoment: (seq: number) => void }) {
  return (
    <li>
      <button className="quiet small seq" aria-label={`${w("goTo")} ${event.seq}`} onClick={() => onMoment(event.seq)}>
        {event.seq}
      </button>
      <div>
        <span className="badge">{named(event.type)}</span>{" "}
        <time className="meta" dateTime={event.at}>{new Date(event.at).toLocaleTimeString(locale())}</time>
        <div className="told">{told(event)}</div>
      </div>
    </li>
  );
}
