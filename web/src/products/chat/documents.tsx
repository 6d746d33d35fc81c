// The tenant's documents: add, list and delete them.
import { useCallback, useEffect, useRef, useState, type DragEvent } from "react";
import { t } from "../../i18n";
import { explain } from "../../problems";
import * as client from "./documents-client";
import { DocumentRow } from "./upload-row";
import * as uploads from "./uploads";
import "./styles.css";
import { w } from "./words";

const POLL_MS = 2_000;
const KINDS = ".md,.markdown,.txt,.html,.htm,.pdf,.docx,.xlsx,.pptx,.csv";

export function Documents() {
  const { documents, next, problem, refresh, more } = useDocuments();
  const sent = uploads.useUploads();
  const names = new Set(documents?.map((each) => each.name));
  // The list says it of those that it has.
  const isListed = (each: uploads.Upload) => each.state === "stored" && each.twin === undefined && names.has(each.name);
  return (
    <div className="stack">
      <DropZone />
      <ul className="plain stack uploads" aria-live="polite">
        {sent.filter((each) => !isListed(each)).map((each) => <DocumentRow key={each.name} upload={each} />)}
      </ul>
      {problem !== null && (
        <p className="alert row" role="alert">
          <span>{explain(problem)}</span>
          <button className="small" onClick={() => void refresh()}>{t("retry")}</button>
        </p>
      )}
      {documents === null && problem === null && <p className="meta" role="status">{t("loading")}</p>}
      {documents?.length === 0 && <p className="hint">{w("none")}</p>}
      {documents !== null && documents.length > 0 && (
        <ul className="plain rows stored" aria-label={w("documents")}>
          {documents.map((each) => (
            <Row
              key={each.name}
              document={each}
              isNew={sent.some((upload) => upload.name === each.name && isListed(upload))}
              onDeleted={refresh}
            />
          ))}
        </ul>
      )}
      {next !== null && <button className="small" onClick={() => void more()}>{w("more")}</button>}
      <p className="meta">{w("shared")}</p>
    </div>
  );
}

function DropZone() {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    uploads.add([...event.dataTransfer.files]);
  };
  return (
    <div
      className={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={onDrop}
    >
      <p>{w("drop")}</p>
      <p className="meta">{w("kinds")}</p>
      <button onClick={() => input.current?.click()}>{w("add")}</button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        accept={KINDS}
        aria-label={w("add")}
        onChange={(event) => {
          uploads.add([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </div>
  );
}

interface RowProps { document: client.Document; isNew: boolean; onDeleted: () => Promise<void> }

function Row({ document, isNew, onDeleted }: RowProps) {
  const [isAsking, setAsking] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const remove = async () => {
    setDeleting(true);
    try {
      await client.remove(document.name);
      uploads.dismiss(document.name);
      await onDeleted();
    } catch (error) {
      setProblem(error);
      setDeleting(false);
    }
  };
  return (
    <li>
      <div className="row">
        <div className="grow">
          <div className="clip">{document.name}</div>
          <div className="meta">
            {document.passages} {w(document.passages === 1 ? "onePassage" : "passages")}
            {isNew && ` · ${w("stored")}`}
          </div>
        </div>
        {!isAsking && (
          <button className="quiet small danger" aria-label={`${w("remove")}: ${document.name}`} onClick={() => setAsking(true)}>
            {w("remove")}
          </button>
        )}
      </div>
      {isAsking && (
        <div className="row wrap ask meta" role="group" aria-label={w("really")}>
          <span className="grow">{w("really")}</span>
          <button className="small" autoFocus disabled={isDeleting} onClick={() => setAsking(false)}>{w("keep")}</button>
          <button className="small danger" disabled={isDeleting} onClick={() => void remove()}>{w("remove")}</button>
        </div>
      )}
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
    </li>
  );
}

/** Read the documents, again whenever an upload ends, and while others are being read. */
function useDocuments() {
  const [documents, setDocuments] = useState<client.Document[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const sent = uploads.useUploads();
  const refresh = useCallback(async () => {
    try {
      const found = await client.list(null);
      setDocuments(found.documents);
      setNext(found.next);
      uploads.compare(found);
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, []);
  const more = async () => {
    try {
      const found = await client.list(next);
      setDocuments([...(documents ?? []), ...found.documents]);
      setNext(found.next);
    } catch (error) {
      setProblem(error);
    }
  };
  const stored = sent.filter((each) => each.state === "stored").length;
  useEffect(() => {
    const timer = setTimeout(() => void refresh(), 0);
    return () => clearTimeout(timer);
  }, [refresh, stored]);
  const isWatching = sent.some((each) => each.file === undefined && (each.state === "reading" || each.state === "lost"));
  useEffect(() => {
    if (!isWatching) return;
    const timer = setInterval(() => void refresh(), POLL_MS);
    return () => clearInterval(timer);
  }, [isWatching, refresh]);
  return { documents, next, problem, refresh, more };
}
