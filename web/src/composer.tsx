// The box to write in.
import { useEffect, useLayoutEffect, useRef, useState, type ClipboardEvent } from "react";
import type { Fields } from "./api";
import { isTooLong } from "./attachments/blocks";
import { divided } from "./attachments/divided";
import { Chosen, DropHint, Lost, Picker, useFiles } from "./attachments/files";
import { draft, draftFiles, joined, keepDraft, keepDraftFiles, keepSending } from "./drafts";
import { t } from "./i18n";
import { Icon } from "./icon";
import { onEnter } from "./keys";

/** How a graph takes files: as content blocks of a message. */
export interface Attachments {
  /** As the attribute of an input, such as `image/*`. */
  accept: string;
  read: (file: File) => Promise<Fields>;
}

interface Props {
  /** Where the text belongs: a thread or an assistant. Its draft survives a reload. */
  place: string;
  /** Send a text; false puts it back into the box. */
  onSend: (text: string, files: Fields[]) => Promise<boolean>;
  onStop?: (() => void) | undefined;
  readOnly?: boolean;
  placeholder?: string;
  attachments?: Attachments | undefined;
  /** Takes files at once, in place of attaching them, and a text that is too long for a message as files. */
  onFiles?: ((files: File[], isText: boolean) => void) | undefined;
}

const TALLEST = 240;

/**
 * Enter sends, Shift+Enter begins a line. The box is empty as soon as a text is on its way, so a second
 * Enter sends nothing; texts are sent one after the other. What the server refuses comes back.
 */
export function Composer({ place, onSend, onStop, readOnly = false, placeholder, attachments, onFiles }: Props) {
  const [text, setText] = useState(() => draft(place));
  const form = useRef<HTMLFormElement>(null);
  const accept = readOnly ? undefined : onFiles === undefined ? attachments?.accept : "*";
  const take = onFiles && ((found: File[]) => onFiles(found, false));
  const { files, setFiles, add, remove, problem, isOver, onPaste } = useFiles(accept, form, take);
  const [before, setBefore] = useState(() => draftFiles(place));
  const lost = before.filter((name) => !files.some((each) => each.name === name));
  if (lost.length < before.length) setBefore(lost);
  useEffect(() => {
    keepDraftFiles(place, [...before, ...files.map((each) => each.name)]);
  }, [before, files, place]);
  const box = useRef<HTMLTextAreaElement>(null);
  const line = useRef<Promise<unknown>>(Promise.resolve());
  const latest = useRef(onSend);
  useEffect(() => {
    latest.current = onSend;
  }, [onSend]);
  useLayoutEffect(() => {
    const area = box.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, TALLEST)}px`;
  }, [text, placeholder]);

  const write = (value: string) => {
    setText(value);
    keepDraft(place, value);
  };
  const submit = () => {
    const wanted = text.trim();
    const chosen = files;
    if ((wanted === "" && chosen.length === 0) || readOnly) return;
    if (onFiles !== undefined && isTooLong(wanted)) {
      const { words, files: parts } = divided(wanted);
      onFiles(parts, true);
      write(words);
      return;
    }
    write("");
    keepSending(place, wanted);
    setFiles([]);
    setBefore([]);
    line.current = line.current.then(async () => {
      const blocks: Fields[] = [];
      for (const file of chosen) if (attachments !== undefined) blocks.push(await attachments.read(file));
      const isSent = await latest.current(wanted, blocks);
      keepSending(place, "");
      if (!isSent) {
        setText((now) => {
          const left = joined(wanted, now);
          keepDraft(place, left);
          return left;
        });
      }
      if (!isSent) setFiles((now) => [...chosen, ...now]);
    });
    box.current?.focus();
  };

  /** Take what is pasted as files if it is too long for a message. */
  const paste = (event: ClipboardEvent<HTMLTextAreaElement>) => {
    onPaste(event);
    const pasted = event.clipboardData.getData("text/plain");
    if (event.defaultPrevented || onFiles === undefined || readOnly || !isTooLong(pasted)) return;
    event.preventDefault();
    const { words, files: parts } = divided(pasted);
    onFiles(parts, true);
    if (words !== "") write(joined(text, words));
  };
  const stop = () => {
    onStop?.();
    // The button goes, and would take the focus with it.
    box.current?.focus();
  };

  return (
    <form
      ref={form}
      className={`composer${readOnly ? " closed" : ""}${isOver ? " over" : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {accept !== undefined && <Picker accept={accept === "*" ? "" : accept} onPick={add} />}
      <div className="grow">
        <Chosen files={files} onRemove={remove} />
        {problem !== "" && <p className="wrong" role="alert">{problem}</p>}
        <Lost names={lost} onForget={() => setBefore([])} />
        {isOver && <DropHint />}
        <textarea
          ref={box}
          dir="auto"
          rows={1}
          value={text}
          readOnly={readOnly}
          autoFocus={!readOnly}
          aria-label={t("message")}
          placeholder={readOnly ? t("readOnly") : (placeholder ?? t("placeholder"))}
          onChange={(event) => write(event.target.value)}
          onPaste={paste}
          onKeyDown={(event) => {
            if (event.key === "Escape") stop();
            onEnter(submit)(event);
          }}
        />
      </div>
      {onStop !== undefined && (
        <button type="button" title="Esc" onClick={stop}>
          <Icon name="stop" />
          {t("stop")}
        </button>
      )}
      <button className="primary" disabled={readOnly || (text.trim() === "" && files.length === 0)}>
        <Icon name="send" />
        {t("send")}
      </button>
    </form>
  );
}
