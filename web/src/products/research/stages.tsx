// How far a project is, by stage, and how long it may take.
import * as client from "./client";
import { w } from "./words";

export function Stages({ progress }: { progress: client.Progress }) {
  const isActive = client.isActive(progress.status);
  return (
    <section className="card stages" aria-label={w("stages")}>
      <div className="row">
        <strong className="share">{progress.percentage} %</strong>
        <span className="grow" />
        {progress.status === "running" && <span className="meta">{remaining(progress.eta_seconds)}</span>}
      </div>
      <div
        className="bar"
        role="progressbar"
        aria-label={w("stages")}
        aria-valuenow={progress.percentage}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <span style={{ width: `${progress.percentage}%` }} />
      </div>
      <ol className="plain">
        {client.STAGES.map((name) => <StageRow key={name} name={name} stage={progress.stages[name]} />)}
      </ol>
      {isActive && progress.current_item !== null && (
        <p className="meta item" title={progress.current_item}>{w("now")}: {progress.current_item}</p>
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
