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

export default function Page({ threadId, onChange }: PageProps) {
  const project = useProject(threadId, onChange);
  const { progress, problem } = project;
  if (progress === null) {
    return problem === null ? (
      <p className="empty" role="status">{t("loading")}</p>
    ) : (
      <p className="alert banner" role="alert">
        <span>{explain(problem)}</span>
        <button onClick={() => void project.refresh()}>{w("again")}</button>
      </p>
    );
  }
  const isActive = client.isActive(progress.status);
  return (
    <article className="research" aria-label={progress.question}>
      <header>
        <div className="row wrap">
          <span className={`badge ${progress.status}`} role="status">{w(progress.status)}</span>
          <span className="grow" />
          <button className="quiet" onClick={() => go({ assistant: "research" })}>{w("new")}</button>
        </div>
        <h1>{progress.question}</h1>
      </header>
      {(isActive || progress.status !== "completed") && <Stages progress={progress} />}
      {progress.error !== null && <p className="alert" role="alert">{progress.error}</p>}
      {project.isLost && isActive && <p className="notice" role="status">{w("lost")}</p>}
      {problem !== null && <p className="alert" role="alert">{told(problem)}</p>}
      <Controls project={project} />
      {!isActive && <Result project={project} />}
      {progress.notes.length > 0 && <Notes notes={progress.notes} />}
    </article>
  );
}

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
    <details className="notes">
      <summary>{w("notes")} ({notes.length})</summary>
      <ul>{notes.map((each, i) => <li key={i}>{each}</li>)}</ul>
    </details>
  );
}

function told(problem: unknown): string {
  const status = (problem as { status?: unknown }).status;
  return status === 409 || status === 422 ? (problem as Error).message : explain(problem);
}
