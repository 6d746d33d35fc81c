// The investigation: causes, timeline and events, now or at a moment.
import { useState, type KeyboardEvent } from "react";
import * as api from "../../api";
import { t } from "../../i18n";
import { explain } from "../../problems";
import { go } from "../../route";
import type { ViewProps } from "../props";
import { Causes } from "./causes";
import * as client from "./client";
import { Log } from "./log";
import { Moment } from "./moment";
import { Sources } from "./sources";
import "./styles.css";
import { Timeline } from "./timeline";
import { useSession, type Session } from "./use-session";
import { w } from "./words";

const TABS = ["causes", "sources", "timeline", "log"] as const;
type Tab = (typeof TABS)[number];

export default function Panel(view: ViewProps) {
  const { threadId } = view;
  const session = useSession(threadId);
  const { state, problem } = session;
  const [tab, setTab] = useState<Tab>("causes");
  if (state === null) {
    return problem === null ? (
      <p className="empty" role="status">{t("loading")}</p>
    ) : (
      <div className="alert row" role="alert">
        <span>{explain(problem)}</span>
        <button className="small" onClick={session.retry}>{w("again")}</button>
      </div>
    );
  }
  if (session.last === 0 && state.seq === 0) return <p className="empty">{w("empty")}</p>;
  return (
    <div className="stack diagnosis">
      <Connection session={session} />
      <Origin id={threadId} session={session} />
      <Moment id={threadId} session={session} readOnly={view.readOnly} />
      <Conclusion state={state} />
      <Tabs chosen={tab} onChoose={setTab} />
      <div className="stack" role="tabpanel" id="diagnosis-view" aria-labelledby={`diagnosis-${tab}`} tabIndex={0}>
        {tab === "causes" && <Causes id={threadId} state={state} />}
        {tab === "sources" && (
          <Sources view={view} state={state} answered={answeredIn(session.events)} isNow={session.moment === null} />
        )}
        {tab === "timeline" && <Timeline state={state} onMoment={session.setMoment} />}
        {tab === "log" && <Log session={session} />}
      </div>
      <Download id={threadId} />
    </div>
  );
}

/** Return the last event that the assistant has answered. */
export function answeredIn(events: client.Event[]): number {
  return events.findLast((each) => each.type === "message_added" && each.data.role === "assistant")?.seq ?? 0;
}

/** Say where a session that is a copy comes from. */
function Origin({ id, session }: { id: string; session: Session }) {
  const copied = session.events.findLast((each) => each.type === "session_branched" && each.data.origin !== id);
  if (copied === undefined) return null;
  const thread = String(copied.data.origin);
  return (
    <p className="notice row">
      <span>{w("branched")} {String(copied.data.seq)}.</span>
      <button className="small" onClick={() => go({ thread, assistant: "diagnosis" })}>{w("toOrigin")}</button>
    </p>
  );
}

function Connection({ session }: { session: Session }) {
  if (session.connection === "open" && session.problem === null) return null;
  return <p className="notice" role="status">{w(session.connection === "refused" ? "refused" : "lost")}</p>;
}

function Conclusion({ state }: { state: client.State }) {
  const { conclusion } = state;
  const cause = conclusion?.hypothesis == null ? undefined : state.hypotheses[conclusion.hypothesis];
  const head = conclusion === null ? "open" : cause === undefined ? "inconclusive" : "found";
  return (
    <section className={`card stack tight conclusion ${head}`} aria-label={w(head)}>
      <span className="meta">{w(head)}</span>
      {cause !== undefined && <strong>{cause.statement}</strong>}
      {conclusion !== null && conclusion.missing.length > 0 && (
        <span>{w("missing")} {conclusion.missing.join(", ")}</span>
      )}
    </section>
  );
}

function Tabs({ chosen, onChoose }: { chosen: Tab; onChoose: (tab: Tab) => void }) {
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = TABS[(TABS.indexOf(chosen) + step + TABS.length) % TABS.length] ?? chosen;
    onChoose(next);
    event.currentTarget.querySelector<HTMLElement>(`#diagnosis-${next}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={w("views")} onKeyDown={onKeyDown}>
      {TABS.map((each) => (
        <button
          key={each}
          id={`diagnosis-${each}`}
          role="tab"
          aria-selected={each === chosen}
          aria-controls="diagnosis-view"
          tabIndex={each === chosen ? 0 : -1}
          onClick={() => onChoose(each)}
        >
          {w(each)}
        </button>
      ))}
    </div>
  );
}

function Download({ id }: { id: string }) {
  const [problem, setProblem] = useState<unknown>(null);
  const download = () => {
    setProblem(null);
    api.download(client.reportPath(id), "report.md").catch(setProblem);
  };
  return (
    <div>
      <button className="small" onClick={download}>{w("report")}</button>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
    </div>
  );
}
