// What can be done with a project now. What stops or spends is asked about first.
import { useState } from "react";
import type { Action, Progress } from "./client";
import type { Project } from "./use-project";
import { budget, w } from "./words";

type Asked = "cancel" | "more" | null;

/** Return the actions that make sense in the project's state. */
export function actionsOf(progress: Progress): Action[] {
  switch (progress.status) {
    case "queued":
    case "running":
      return ["pause", "finish", "cancel"];
    case "pausing":
      return ["resume", "cancel"];
    case "finishing":
      return ["cancel"];
    case "paused":
      return ["resume", "finish", "cancel"];
    case "failed":
    case "cancelled":
      return ["resume"];
    default:
      return [];
  }
}

/** Return twice the limits that were reached. */
export function raised(progress: Progress): Record<string, number> {
  return Object.fromEntries(
    progress.limits_hit.flatMap((name) => {
      const limit = progress.limits[name];
      return limit === undefined ? [] : [[name, limit * 2]];
    }),
  );
}

export function Controls({ project }: { project: Project }) {
  const [asked, setAsked] = useState<Asked>(null);
  const { progress, isActing, act } = project;
  if (progress === null) return null;
  const actions = actionsOf(progress);
  const canRaise = progress.status === "completed" && Object.keys(raised(progress)).length > 0;
  if (asked === "cancel" && actions.includes("cancel")) {
    return (
      <Ask
        text={w("cancelAsk")}
        no={w("keepGoing")}
        yes={w("reallyCancel")}
        onNo={() => setAsked(null)}
        onYes={() => {
          setAsked(null);
          void act("cancel");
        }}
      />
    );
  }
  if (asked === "more" && canRaise) {
    const limits = Object.entries(raised(progress)).map(([name, amount]) => `${budget(name)} ${amount / 2} → ${amount}`);
    return (
      <Ask
        text={`${w("moreAsk")} ${limits.join(", ")}. ${w("moreAsk2")}`}
        no={w("notNow")}
        yes={w("reallyMore")}
        onNo={() => setAsked(null)}
        onYes={() => {
          setAsked(null);
          void act("resume", raised(progress));
        }}
      />
    );
  }
  if (actions.length === 0 && !canRaise) return null;
  return (
    <div className="actions controls">
      {actions.map((each) => (
        <button
          key={each}
          className={each === "cancel" ? "danger" : each === "resume" ? "primary" : ""}
          disabled={isActing}
          onClick={() => (each === "cancel" ? setAsked("cancel") : void act(each))}
        >
          {w(each)}
        </button>
      ))}
      {canRaise && <button disabled={isActing} onClick={() => setAsked("more")}>{w("goOn")}</button>}
    </div>
  );
}

interface AskProps { text: string; no: string; yes: string; onNo: () => void; onYes: () => void }

function Ask({ text, no, yes, onNo, onYes }: AskProps) {
  return (
    <div className="card stack controls" role="alertdialog" aria-label={text}>
      <p>{text}</p>
      <div className="actions">
        <button autoFocus onClick={onNo}>{no}</button>
        <button className="danger" onClick={onYes}>{yes}</button>
      </div>
    </div>
  );
}
