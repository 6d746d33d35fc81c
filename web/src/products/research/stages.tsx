// How far a project is, by stage, and how long it may take.
import * as client from "./client";
import { w } from "./words";

export function Stages({ progress }: { progress: client.Progress }) {
  const isActive = client.isActive(progress.status);
  return (
    <section className="card stack stages controls" aria-label={w("stages")}>
      <div className="row">
        <strong className="share">{progress.percentage} %</strong>
        <span className="grow" />
        {progress.status === "running" && <span className="meta">{remaining(progress.eta_seconds)}</span>}
      </div>
      <progress className="progress" aria-label={w("stages")} max={100} value={progress.percentage} />
      <ol className="plain">
        {client.STAGES.map((name) => <StageRow key={name} name={name} stage={progress.stages[name]} />)}
      </ol>
      {isActive && progress.current_item !== null && (
        <p className="meta clip item" title={progress.current_item}>{w("now")}: {progress.current_item}</p>
      )}
    </section>
  );
}

const MARKS = { pending: "○", running: "◐", completed: "●", failed: "✕" };

function StageRow({ name, stage }: { name: client.StageName; stage: client.Stage }) {
  const count = stage.total > 0 ? ` · ${stage.done}/${stage.total}` : "";
  const said = { pending: w("pending"), running: `${stage.percentage} %`, completed: w("done"), failed: w("failed") };
  return (
    <li data-status={stage.status} aria-current={stage.status === "running" ? "step" : undefined}>
      <span aria-hidden="true">{MARKS[stage.status]}</span>
      <span className="name">{w(name)}</span>
      <span className="meta">{said[stage.status]}{count}</span>
    </li>
  );
}

/** Say a remaining time in words. */
export function remaining(seconds: number | null): string {
  if (seconds === null) return w("noEstimate");
  const about = seconds < 90 ? `${Math.max(1, Math.round(seconds))} ${w("second")}` : `${Math.round(seconds / 60)} ${w("minute")}`;
  return `${w("left")} ${about} ${w("remaining")}`.trim();
}
