// The box to write in.
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Fields } from "./api";
import { draft, keepDraft } from "./drafts";
import { t } from "./i18n";
import { Icon } from "./icon";

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
}

const TALLEST = 240;

/**
 * Enter sends, Shift+Enter begins a line. The box is empty as soon as a text is on its way, so a second
 * Enter sends nothing; texts are sent one after the other. What the server refuses comes back.
 */
export function Composer({ place, onSend, onStop, readOnly = false, placeholder, attachments }: Props) {
  const [text, setText] = useState(() => draft(place));
  const [files, setFiles] = useState<File[]>([]);
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
  }, [text]);

  const write = (value: string) => {
    setText(value);
    keepDraft(place, value);
  };
  const submit = () => {
    const wanted = text.trim();
    const chosen = files;
    if ((wanted === "" && chosen.length === 0) || readOnly) return;
    setText("");
    setFiles([]);
    line.current = line.current.then(async () => {
      const blocks: Fields[] = [];
      for (const file of chosen) if (attachments !== undefined) blocks.push(await attachments.read(file));
      const isSent = await latest.current(wanted, blocks);
      setText((now) => {
        const left = isSent ? now : [wanted, now].filter((each) => each !== "").join("\n");
        keepDraft(place, left);
        return left;
      });
      if (!isSent) setFiles(chosen);
    });
    box.current?.focus();
  };

  return (
    <form
      className={readOnly ? "composer closed" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {attachments !== undefined && !readOnly && (
        <Picker accept={attachments.accept} onPick={(picked) => setFiles((old) => [...old, ...picked])} />
      )}
      <div className="grow">
        {files.length > 0 && <Chosen files={files} onRemove={(gone) => setFiles(files.filter((each) => each !== gone))} />}
        <textarea
          ref={box}
          rows={1}
          value={text}
          readOnly={readOnly}
          autoFocus={!readOnly}
          aria-label={t("message")}
          placeholder={readOnly ? t("readOnly") : (placeholder ?? t("placeholder"))}
          onChange={(event) => write(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            submit();
          }}
        />
      </div>
      {onStop !== undefined && (
        <button type="button" onClick={onStop}>
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

function Picker({ accept, onPick }: { accept: string; onPick: (files: File[]) => void }) {
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

function Chosen({ files, onRemove }: { files: File[]; onRemove: (file: File) => void }) {
  return (
    <ul className="plain row wrap">
      {files.map((file) => (
        <li className="badge" key={`${file.name} ${file.lastModified}`}>
          {file.name}
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

/** Read a file as a content block of an image, for a graph whose model takes images. */
export async function imageBlock(file: File): Promise<Fields> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return { type: "image", mime_type: file.type, data: btoa(binary), source_type: "base64" };
}
