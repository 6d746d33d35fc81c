// A document on its way: how far it is, or why it failed.
import { ApiError } from "../../api";
import { Share, UploadRow } from "../upload-row";
import * as uploads from "./uploads";
import { w } from "./words";

export function DocumentRow({ upload }: { upload: uploads.Upload }) {
  const isOver = upload.state !== "reading" && upload.state !== "asking";
  const isFailed = upload.state === "failed";
  return (
    <UploadRow
      name={upload.name}
      isFailed={isFailed}
      actions={isFailed && upload.file !== undefined ? [{ word: w("again"), onClick: () => uploads.retry(upload) }] : []}
      dismiss={w("dismiss")}
      onDismiss={isOver ? () => uploads.dismiss(upload.name) : undefined}
    >
      <Said upload={upload} />
    </UploadRow>
  );
}

function Said({ upload }: { upload: uploads.Upload }) {
  if (upload.state === "reading") return <Share name={upload.name} done={upload.done} word={w("reading")} />;
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
