// An upload: how far it is, or why it failed.
import { ApiError } from "../../api";
import * as uploads from "./uploads";
import { w } from "./words";

export function UploadRow({ upload }: { upload: uploads.Upload }) {
  const isOver = upload.state !== "reading" && upload.state !== "asking";
  return (
    <li className={upload.state === "failed" ? "alert" : "upload"}>
      <div className="row">
        <span className="grow title">{upload.name}</span>
        {upload.state === "failed" && upload.file !== undefined && (
          <button className="quiet" onClick={() => uploads.retry(upload)}>{w("again")}</button>
        )}
        {isOver && (
          <button className="quiet" aria-label={`${w("dismiss")}: ${upload.name}`} onClick={() => uploads.dismiss(upload.name)}>
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
        <div className="bar" role="progressbar" aria-label={upload.name} aria-valuenow={share} aria-valuemin={0} aria-valuemax={100}>
          <span style={{ width: `${share}%` }} />
        </div>
        <span className="meta">{w("reading")} · {share} %</span>
      </>
    );
  }
  if (upload.state === "asking") {
    return (
      <div className="row wrap ask">
        <span className="grow">{w("replaceAsk")}</span>
        <button onClick={() => uploads.dismiss(upload.name)}>{w("keep")}</button>
        <button className="danger" onClick={() => uploads.replace(upload)}>{w("replace")}</button>
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
