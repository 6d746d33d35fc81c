// A message of a conversation, and what a person can do with it.
import { memo, Suspense, useState, type ComponentType } from "react";
import type { Fields } from "./api";
import type { Place } from "./branches";
import { t } from "./i18n";
import { Icon } from "./icon";
import { Text } from "./markdown";
import type { AnswerProps, MessageProps } from "./products/props";
import type { Shown } from "./shown";

export interface MessageActions {
  edit: (id: string, text: string) => Promise<boolean>;
  repeat: (id: string) => void;
  show: (version: string) => void;
}

interface Props {
  message: Shown;
  values: Fields;
  growing: boolean;
  isLast: boolean;
  /** The message as the newest checkpoint has it. */
  stored: Fields | undefined;
  /** The state as the server has stored it last. */
  storedValues: Fields;
  /** What the product shows at a message of the person. */
  Extra: ComponentType<MessageProps> | undefined;
  /** How the product shows an answer; Markdown by default. */
  Answer: ComponentType<AnswerProps> | undefined;
  place: Place | undefined;
  readOnly: boolean;
  actions: MessageActions;
}

export const Message = memo(function Message(props: Props) {
  const { message, values, growing, isLast, stored, Answer, Extra, place, readOnly, actions } = props;
  const [isEdited, setEdited] = useState(false);
  const isHuman = message.role === "human";
  const mayChange = place?.parent != null && !readOnly;
  return (
    <li className={isHuman ? "message human" : "message ai"} data-key={message.id}>
      <span className="hidden">{isHuman ? t("you") : t("assistant")}:</span>
      {isEdited ? (
        <Editor
          text={message.text}
          onClose={() => setEdited(false)}
          onSave={(text) => void actions.edit(message.id, text).then((ok) => ok && setEdited(false))}
        />
      ) : isHuman ? (
        <Bubble message={message} />
      ) : Answer === undefined ? (
        <Text text={message.text} growing={growing} />
      ) : (
        <Suspense fallback={<Text text={message.text} growing={growing} />}>
          <Answer message={message} stored={stored} values={values} isLast={isLast} growing={growing} />
        </Suspense>
      )}
      {isHuman && Extra !== undefined && (
        <Suspense><Extra message={message} values={values} stored={props.storedValues} /></Suspense>
      )}
      {!growing && !isEdited && (
        <div className="tools">
          {place !== undefined && place.versions.length > 1 && <Versions place={place} onShow={actions.show} />}
          {mayChange && isHuman && <button onClick={() => setEdited(true)}>{t("edit")}</button>}
          {mayChange && !isHuman && (
            <button onClick={() => actions.repeat(message.id)}>{t("regenerate")}</button>
          )}
          {!isHuman && <Copy text={message.text} />}
        </div>
      )}
    </li>
  );
});

const LONG = 3_000;

function Bubble({ message }: { message: Shown }) {
  const isLong = message.text.length > LONG;
  return (
    <div className={isLong ? "bubble long" : "bubble"} tabIndex={isLong ? 0 : undefined}>
      {message.text}
      {message.parts.map((part, i) => <span className="badge" key={i}>{part}</span>)}
    </div>
  );
}

function Copy({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return <button onClick={() => void copy()}>{isCopied ? t("copied") : t("copy")}</button>;
}

function Versions({ place, onShow }: { place: Place; onShow: (version: string) => void }) {
  const step = (by: number) => {
    const version = place.versions[place.current + by];
    if (version !== undefined) onShow(version);
  };
  return (
    <span className="row" role="group" aria-label={t("versions")}>
      <button className="icon" aria-label={t("previous")} disabled={place.current === 0} onClick={() => step(-1)}>
        <Icon name="left" size={14} />
      </button>
      <span>{place.current + 1}/{place.versions.length}</span>
      <button
        className="icon"
        aria-label={t("next")}
        disabled={place.current === place.versions.length - 1}
        onClick={() => step(1)}
      >
        <Icon name="right" size={14} />
      </button>
    </span>
  );
}

interface EditorProps {
  text: string;
  onSave: (text: string) => void;
  onClose: () => void;
}

function Editor({ text, onSave, onClose }: EditorProps) {
  const [value, setValue] = useState(text);
  return (
    <form
      className="edit stack tight"
      onSubmit={(event) => {
        event.preventDefault();
        if (value.trim() !== "") onSave(value.trim());
      }}
    >
      <textarea
        autoFocus
        rows={3}
        aria-label={t("edit")}
        value={value}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
        onChange={(event) => setValue(event.target.value)}
      />
      <div className="row actions">
        <button type="button" onClick={onClose}>{t("cancel")}</button>
        <button className="primary">{t("send")}</button>
      </div>
    </form>
  );
}
