// A project: its progress while it works, and its report.
import { t } from "../../i18n";
import { explain } from "../../problems";
import { go } from "../../route";
import type { PageProps } from "../props";
import * as client from "./client";
import { Controls } from "./controls";
import { Report } from "./report";
import { Stages } from "./stages";
import "./styles.css";
import { useProject, type Project } from "./use-project";
import { w } from "./words";

export default function Page({ threadId }: PageProps) {
  const project = useProject(threadId);
  const { progress, problem } = project;
  if (progress === null) {
    return problem === null ? (
      <p className="empty" role="status">{t("loading")}</p>
    ) : (
      <p className="alert row banner" role="alert">
        <span>{explain(problem)}</span>
        <button className="small" onClick={() => void project.refresh()}>{w("again")}</button>
      </p>
    );
  }
  const isActive = client.isActive(progress.status);
  return (
    <article className="conversation research" aria-label={progress.question}>
      <header className="row">
        <h1 className="grow clip">{progress.question}</h1>
        <button className="small" onClick={() => go({ assistant: "research" })}>{w("new")}</button>
      </header>
      <div className="scroller" tabIndex={0} role="region" aria-label={w("report")}>
        <div className="stack column">
          <div className="message human"><p className="bubble">{progress.question}</p></div>
          <p><span className={BADGES[progress.status] ?? "badge"} role="status">{w(progress.status)}</span></p>
          {(isActive || progress.status !== "completed") && <Stages progress={progress} />}
          {progress.status === "failed" && <p className="alert" role="alert">{w("failedHint")}</p>}
          {project.isLost && isActive && <p className="notice" role="status">{w("lost")}</p>}
          {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
          <Controls project={project} />
          {!isActive && <Result project={project} />}
          {progress.notes.length > 0 && <Notes notes={progress.notes} />}
        </div>
      </div>
    </article>
  );
}

const BADGES: Record<string, string> = {
  running: "badge accent", completed: "badge good", failed: "badge bad", cancelled: "badge warn", paused: "badge warn",
};

function Result({ project }: { project: Project }) {
  const { progress, written } = project;
  if (progress === null) return null;
  if (written !== null) return <Report id={progress.project_id} written={written} />;
  const said =
    progress.status === "failed" ? "noReportFailed" : progress.status === "cancelled" ? "noReportCancelled" : "noReport";
  return <p className="empty">{w(said)}</p>;
}

function Notes({ notes }: { notes: string[] }) {
  return (
    <details className="hint controls">
      <summary>{w("notes")} ({notes.length})</summary>
      <ul className="prose">{notes.map((each, i) => <li key={i}>{each}</li>)}</ul>
    </details>
  );
}

