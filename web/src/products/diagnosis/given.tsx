// What is on its way to the session, above the composer, and what was added.
import { useEffect, useState } from "react";
import { UploadRow, Share } from "../upload-row";
import type { ViewProps } from "../props";
import { measures } from "./measures";
import "./styles.css";
import * as uploads from "./uploads";
import { w } from "./words";

export default function Given({ threadId, isBusy, readOnly, say }: ViewProps) {
  const sent = uploads.useUploads(threadId);
  const added = sent.filter((each) => each.state === "stored");
  useEffect(() => {
    // The run reads them.
    if (isBusy) uploads.forget(threadId);
  }, [isBusy, threadId]);
  if (sent.length === 0) return null;
  return (
    <div className="stack tight given">
      <Underway thread={threadId} />
      {added.length > 0 && (
        <section className="notice stack tight" role="status">
          <ul className="plain" aria-label={w("added")}>
            {added.map((each) => <Added key={each.id} upload={each} />)}
          </ul>
          <div className="row wrap">
            <span className="grow">{w(added.length === 1 ? "nextReads" : "nextReadsAll")}</span>
            {!readOnly && <Look names={added.map((each) => each.file.name)} say={say} />}
            <button className="quiet small" onClick={() => uploads.forget(threadId)}>{w("dismiss")}</button>
          </div>
        </section>
      )}
    </div>
  );
}

/** What is not added yet. */
export function Underway({ thread }: { thread: string }) {
  const sent = uploads.useUploads(thread).filter((each) => each.state !== "stored");
  return (
    <ul className="plain stack tight uploads" aria-label={w("uploads")}>
      {sent.map((each) => <Row key={each.id} upload={each} />)}
    </ul>
  );
}

function Row({ upload }: { upload: uploads.Upload }) {
  const isFailed = upload.state === "failed";
  const again = { word: w("again"), onClick: () => uploads.retry(upload) };
  const cancel = { word: w("cancel"), onClick: () => uploads.dismiss(upload) };
  const actions = isFailed ? (uploads.mayPass(upload.problem) ? [again] : []) : [cancel];
  return (
    <UploadRow
      name={upload.file.name}
      isFailed={isFailed}
      actions={actions}
      dismiss={w("dismiss")}
      onDismiss={isFailed ? () => uploads.dismiss(upload) : undefined}
    >
      {upload.isText && <span className="meta">{w("tooLong")}</span>}
      {isFailed ? (
        <span role="alert">{w("notAdded")} {uploads.reason(upload.problem)}</span>
      ) : (
        <Share
          name={upload.file.name}
          done={upload.done < 1 ? upload.done : undefined}
          word={w(upload.done < 1 ? "sending" : "reading")}
        />
      )}
    </UploadRow>
  );
}

function Added({ upload: { file, source, isText, isKnown } }: { upload: uploads.Upload }) {
  return (
    <li>
      <strong>{file.name}</strong> <span className="meta">{source !== undefined && measures(source)}</span>
      {isKnown === true && <div className="meta">{w("known")}</div>}
      {isText && <div className="meta">{w("tooLong")}</div>}
    </li>
  );
}

interface LookProps { names: string[]; say: ViewProps["say"] }

/** A button that sends the message which reads what was added. */
export function Look({ names, say }: LookProps) {
  const [isSending, setSending] = useState(false);
  const look = async () => {
    setSending(true);
    await say(wording(names));
    setSending(false);
  };
  return (
    <button className="primary small" disabled={isSending} onClick={() => void look()}>
      {w(names.length === 1 ? "look" : "lookAll")}
    </button>
  );
}

const NAMED = 3;

/** Return the message: no word of it may be one that asks to look at a host, such as "check". */
export function wording(names: string[]): string {
  const few = names.slice(0, NAMED).join(", ") + (names.length > NAMED ? ", …" : "");
  return `${w("iAdded")} ${few}. ${w(names.length === 1 ? "readIt" : "readAll")}`;
}
