import { memo, Suspense, useState, type ComponentType } from "react";
import type { Fields } from "./api";
import type { Place } from "./branches";
import { t } from "./i18n";
import { Text } from "./markdown";
import type { MessageProps } from "./products";

export interface Shown { id: string; role: "human" | "ai" | "other"; text: string; extra: Fields }

interface MessageLike {
  id?: string | undefined;
  type?: unknown;
  content?: unknown;
  text?: unknown;
  getType?: () => string;
  additional_kwargs?: unknown;
}

/** Read a message of the hook, or one of a checkpoint. */
export function shown(message: MessageLike | Fields, index: number): Shown {
  const found = message as MessageLike;
  const type = found.getType?.() ?? String(found.type);
  return {
    id: found.id ?? `#${index}`,
    role: type === "human" ? "human" : type === "ai" ? "ai" : "other",
    text: textOf(found.content),
    extra: (found.additional_kwargs ?? {}) as Fields,
  };
}

export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as (string | Fields)[])
    .map((part) => (typeof part === "string" ? part : typeof part.text === "string" ? part.text : ""))
    .join("");
}

interface Props {
  message: Shown;
  values: Fields;
  stored: Fields;
  /** What the product shows at a message of the person. */
  Extra: ComponentType<MessageProps> | undefined;
  growing: boolean;
  place: Place | undefined;
  readOnly: boolean;
  onEdit: (text: string) => Promise<boolean>;
  onRepeat: () => void;
  onVersion: (leaf: string) => void;
}

export const Message = memo(function Message(props: Props) {
  const { message, place } = props;
  const [draft, setDraft] = useState<string | null>(null);
  if (message.role === "other" || (message.text === "" && !props.growing)) return null;
  const isHuman = message.role === "human";
  const mayChange = place?.parent != null && !props.readOnly;
  const versions = place?.versions ?? [];
  const step = (by: number) => {
    const leaf = versions[(place?.current ?? 0) + by];
    if (leaf !== undefined) props.onVersion(leaf);
  };
  return (
    <li className={isHuman ? "message human" : "message ai"} data-id={message.id}>
      <span className="hidden">{isHuman ? t("you") : t("assistant")}:</span>
      {draft !== null ? (
        <form
          className="edit"
          onSubmit={(event) => {
            event.preventDefault();
            if (draft.trim() === "") return;
            void props.onEdit(draft.trim()).then((ok) => ok && setDraft(null));
          }}
        >
          <textarea autoFocus aria-label={t("edit")} value={draft} rows={3}
            onKeyDown={(event) => event.key === "Escape" && setDraft(null)}
            onChange={(event) => setDraft(event.target.value)} />
          <div className="row actions">
            <button type="button" onClick={() => setDraft(null)}>{t("cancel")}</button>
            <button className="primary">{t("send")}</button>
          </div>
        </form>
      ) : isHuman ? (
        <div className="bubble">{message.text}</div>
      ) : (
        <Text text={message.text} growing={props.growing} />
      )}
      {isHuman && props.Extra !== undefined && (
        <Suspense><props.Extra message={message} values={props.values} stored={props.stored} /></Suspense>
      )}
      {!props.growing && draft === null && (
        <div className="tools">
          {versions.length > 1 && place !== undefined && (
            <span className="row">
              <button aria-label={t("previous")} disabled={place.current === 0} onClick={() => step(-1)}>‹</button>
              <span aria-label={t("versions")}>{place.current + 1}/{versions.length}</span>
              <button aria-label={t("next")} disabled={place.current === versions.length - 1} onClick={() => step(1)}>›</button>
            </span>
          )}
          {mayChange && isHuman && <button onClick={() => setDraft(message.text)}>{t("edit")}</button>}
          {mayChange && !isHuman && <button onClick={props.onRepeat}>{t("regenerate")}</button>}
          {!isHuman && <button onClick={() => void navigator.clipboard.writeText(message.text)}>{t("copy")}</button>}
        </div>
      )}
    </li>
  );
});
