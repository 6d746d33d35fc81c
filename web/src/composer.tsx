import { useLayoutEffect, useRef, useState } from "react";
import { t } from "./i18n";

interface Props {
  /** Send a text; false keeps it in the box. */
  onSend: (text: string) => Promise<boolean>;
  onStop?: (() => void) | undefined;
  disabled?: boolean;
}

/** The box to write in. Enter sends, Shift+Enter begins a line. A text that was not sent stays. */
export function Composer({ onSend, onStop, disabled = false }: Props) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = box.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
  }, [text]);
  const submit = async () => {
    const wanted = text.trim();
    if (wanted === "" || isSending || disabled) return;
    setSending(true);
    // Words that were typed meanwhile stay.
    if (await onSend(wanted)) setText((now) => (now.trim() === wanted ? "" : now));
    setSending(false);
    box.current?.focus();
  };
  return (
    <form className="composer" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <textarea
        ref={box} rows={1} value={text} disabled={disabled} aria-label={t("message")} placeholder={t("placeholder")}
        autoFocus
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            void submit();
          }
        }}
      />
      {onStop !== undefined && <button type="button" onClick={onStop}>{t("stop")}</button>}
      <button className="primary" disabled={disabled || isSending || text.trim() === ""}>{t("send")}</button>
    </form>
  );
}
