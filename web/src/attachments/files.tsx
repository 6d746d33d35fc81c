// The files of a message that is being written: chosen, pasted or dropped, with previews.
import { useEffect, useMemo, useRef, useState, type ClipboardEvent, type RefObject } from "react";
import { language, t, wordsOf } from "../i18n";
import { Icon } from "../icon";
import { inBytes, LARGEST, sizeOf } from "./blocks";
import "./styles.css";

const w = wordsOf(
  {
    tooLarge: "The files of a message may have together at most",
    notTaken: "This assistant takes no such file:",
    empty: "The file is empty:",
    again: "The file is attached already:",
    left: "Not attached:",
    lost: "Choose these files again:",
    drop: "Drop the files here",
    files: "Attached files",
  },
  {
    tooLarge: "Os ficheiros de uma mensagem podem ter juntos no máximo",
    notTaken: "Este assistente não aceita este ficheiro:",
    empty: "O ficheiro está vazio:",
    again: "O ficheiro já está junto:",
    left: "Não foi junto:",
    lost: "Escolha de novo estes ficheiros:",
    drop: "Largue os ficheiros aqui",
    files: "Ficheiros juntos",
  },
);

/**
 * The files, and the ways by which they come: the button, the clipboard, and a drop on the part of the page around `form`.
 *
 * @param accept as the attribute of an input
 * @param take takes the files at once: none waits for the message
 */
export function useFiles(accept: string | undefined, form: RefObject<HTMLElement | null>, take?: (files: File[]) => void) {
  const [files, setFiles] = useState<File[]>([]);
  const [problem, setProblem] = useState("");
  const add = (found: File[]) => {
    if (accept === undefined || found.length === 0) return;
    if (take !== undefined) {
      take(found);
      return;
    }
    const { good, problems } = sift(found, files, accept);
    setProblem(problems.join("\n"));
    setFiles([...files, ...good]);
  };
  const onPaste = (event: ClipboardEvent) => {
    const found = [...event.clipboardData.files];
    // A copied table is a text, and a picture of it.
    if (take !== undefined && event.clipboardData.types.includes("text/plain")) return;
    if (accept === undefined || found.length === 0) return;
    event.preventDefault();
    add(found);
  };
  const remove = (gone: File) => {
    setProblem("");
    setFiles((old) => old.filter((each) => each !== gone));
  };
  const isOver = useDrop(form, accept !== undefined, add);
  return { files, setFiles, add, remove, problem, isOver, onPaste };
}

/** Take files that are dropped around an element. Return whether files are dragged over the page. */
function useDrop(form: RefObject<HTMLElement | null>, isWanted: boolean, onFiles: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(onFiles);
  useEffect(() => {
    latest.current = onFiles;
  });
  useEffect(() => {
    const zone = form.current?.closest(".conversation, .page") ?? form.current;
    if (!isWanted || zone === null) return;
    const end = new AbortController();
    const on = (name: "dragover" | "dragleave" | "drop", hear: (event: DragEvent) => void) =>
      document.addEventListener(name, hear, { signal: end.signal });
    /** Take the event, if it is of files that no other part of the page has taken. */
    const take = (event: DragEvent): FileList | undefined => {
      if (event.defaultPrevented || !event.composedPath().includes(zone)) return undefined;
      event.preventDefault();
      return event.dataTransfer?.files;
    };
    on("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files") !== true) return;
      setOver(true);
      take(event);
    });
    // It is of an element, unless the pointer leaves the page.
    on("dragleave", (event) => event.relatedTarget === null && setOver(false));
    on("drop", (event) => {
      setOver(false);
      if (event.dataTransfer?.types.includes("Files") === true) latest.current([...(take(event) ?? [])]);
    });
    return () => end.abort();
  }, [form, isWanted]);
  return isOver;
}

/** Divide what was chosen into what is attached, and sentences about the rest. */
export function sift(found: File[], old: File[], accept: string): { good: File[]; problems: string[] } {
  const good: File[] = [];
  const problems: string[] = [];
  for (const each of found) {
    const all = [...old, ...good];
    const isThere = all.some(({ name, size }) => name === each.name && size === each.size);
    if (!matches(each, accept)) problems.push(`${w("notTaken")} ${each.name}`);
    else if (each.size === 0) problems.push(`${w("empty")} ${each.name}`);
    else if (isThere) problems.push(`${w("again")} ${each.name}`);
    else if (sizeOf([...all, each]) > LARGEST) problems.push(`${w("tooLarge")} ${inBytes(LARGEST, language())}. ${w("left")} ${each.name}`);
    else good.push(each);
  }
  return { good, problems };
}

/** Return whether a file is one that the attribute `accept` of an input names. */
export function matches(file: File, accept: string): boolean {
  return accept.split(",").map((each) => each.trim().toLowerCase()).some((each) =>
    each.startsWith(".")
      ? file.name.toLowerCase().endsWith(each)
      : each.endsWith("/*") ? file.type.startsWith(each.slice(0, -1)) : each === "*" || file.type === each,
  );
}

export function Picker({ accept, onPick }: { accept: string; onPick: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        hidden
        multiple
        type="file"
        accept={accept}
        onChange={(event) => {
          onPick([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <button type="button" className="icon quiet" aria-label={t("attach")} onClick={() => input.current?.click()}>
        <Icon name="attach" />
      </button>
    </>
  );
}

export function Chosen({ files, onRemove }: { files: File[]; onRemove: (file: File) => void }) {
  if (files.length === 0) return null;
  return (
    <ul className="plain row wrap attached" aria-label={w("files")}>
      {files.map((file, i) => (
        <li key={`${file.name} ${file.lastModified} ${i}`}>
          {file.type.startsWith("image/") ? <Preview file={file} /> : <Icon name="attach" size={14} />}
          <span className="clip">{file.name}</span>
          <span className="meta">{inBytes(file.size, language())}</span>
          <button
            type="button"
            className="icon quiet small"
            aria-label={`${t("detach")}: ${file.name}`}
            onClick={() => onRemove(file)}
          >
            <Icon name="close" size={14} />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** A small picture. The policy of the page allows `data:` only. */
function Preview({ file }: { file: File }) {
  const [source, setSource] = useState<string | null>(null);
  const reader = useMemo(() => new FileReader(), []);
  useEffect(() => {
    reader.onload = () => setSource(reader.result as string);
    reader.readAsDataURL(file);
    return () => reader.abort();
  }, [file, reader]);
  return source === null ? null : <img src={source} alt="" />;
}

/** Name files that a reload of the page has taken away. */
export function Lost({ names, onForget }: { names: string[]; onForget: () => void }) {
  if (names.length === 0) return null;
  return (
    <p className="row lost" role="status">
      <span className="grow">{w("lost")} {names.join(", ")}</span>
      <button type="button" className="icon quiet small" aria-label={t("detach")} onClick={onForget}>
        <Icon name="close" size={14} />
      </button>
    </p>
  );
}

export function DropHint() {
  return <p className="drop-hint" role="status">{w("drop")}</p>;
}
