// An upload: how far it is, or why it failed.
import { ApiError } from "../../api";
import * as uploads from "./uploads";
import { w } from "./words";

export function UploadRow({ upload }: { upload: uploads.Upload }) {
  const isOver = upload.state !== "reading" && upload.state !== "asking";
  return (
    <li className={upload.state === "failed" ? "alert" : "notice upload"}>
      <div className="row">
        <span className="grow clip">{upload.name}</span>
        {upload.state === "failed" && upload.file !== undefined && (
          <button className="quiet small" onClick={() => uploads.retry(upload)}>{w("again")}</button>
        )}
        {isOver && (
          <button className="quiet small" aria-label={`${w("dismiss")}: ${upload.name}`} onClick={() => uploads.dismiss(upload.name)}>
            <span aria-hidden="true">×</span>
          </button>
        )}
      </div>
      <Said upload={upload} />
    </li>
  );
}

function Said({ upload }: { upload: uploads.Upload }) {
  if (upload.state === "reading") {
    const share = Math.round(upload.done * 100);
    return (
      <>
        <progress className="progress" aria-label={upload.name} max={100} value={share} />
        <span className="meta">{w("reading")} · {share} %</span>
      </>
    );
  }
  if (upload.state === "asking") {
    return (
      <div className="row wrap ask meta">
        <span className="grow">{w("replaceAsk")}</span>
        <button className="small" onClick={() => uploads.dismiss(upload.name)}>{w("keep")}</button>
        <button className="small danger" onClick={() => uploads.replace(upload)}>{w("replace")}</button>
      </div>
    );
  }
  if (upload.state === "stored") {
    return <span className="meta">{upload.twin === undefined ? w("stored") : `${w("same")} ${upload.twin}.`}</span>;
  }
  return <span>{upload.state === "lost" ? w("missing") : `${w("failed")}. ${reason(upload.problem)}`}</span>;
}

/** Say why a document was not stored, and what to do. */
export function reason(problem: unknown): string {
  const status = problem instanceof ApiError ? problem.status : 0;
  const told = problem instanceof ApiError ? problem.message : "";
  if (status === 413 || /larger than/.test(told)) return w("tooLarge");
  if (status === 429 || status === 503) return w("busy");
  if (status === 0) return w("broken");
  const kinds = /must end with one of (.*)$/.exec(told)?.[1];
  return kinds === undefined ? told : `${w("unsupported")} ${kinds}.`;
}
