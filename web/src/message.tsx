// A message of a conversation, and what a person can do with it.
import { memo, Suspense, useEffect, useRef, useState, type ComponentType, type ReactNode } from "react";
import type { Fields } from "./api";
import { writtenIn } from "./attachments/blocks";
import type { Place } from "./branches";
import { Blocks, PlainBlocks } from "./content/blocks";
import { CopyButton } from "./content/code";
import { LoneResult, Tool } from "./content/tool";
import { t } from "./i18n";
import { preload, Text } from "./markdown";
import type { AnswerProps, MessageProps } from "./products/props";
import type { Shown } from "./shown";
import { Versions } from "./versions";

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
  /** Shown below what the message says. */
  extra?: ReactNode;
}

export const Message = memo(function Message(props: Props) {
  const { message, growing, isLast, Extra, values, stored, place, readOnly, actions } = props;
  const [isEdited, setEdited] = useState(false);
  const item = useRef<HTMLLIElement>(null);
  // An answer follows, which needs the parser.
  useEffect(() => void preload(), []);
  const isHuman = message.role === "human";
  const mayChange = place?.parent != null && !readOnly;
  // Between two calls of tools there is nothing to copy or to repeat.
  const isStep = !isHuman && !isLast && (message.text.trim() === "" || message.toolCalls.length > 0);
  return (
    <li className={isHuman ? "message human" : "message ai"} data-key={message.id} ref={item}>
      <span className="hidden">{isHuman ? t("you") : t("assistant")}:</span>
      {isEdited ? (
        <Editor
          text={stored === undefined ? message.text : writtenIn(stored.content)}
          onClose={() => {
            setEdited(false);
            requestAnimationFrame(() => item.current?.querySelector<HTMLElement>(".tools .edits")?.focus());
          }}
          onSave={(text) => void actions.edit(message.id, text).then((ok) => ok && setEdited(false))}
        />
      ) : isHuman ? (
        <Bubble message={message} />
      ) : (
        <Said {...props} />
      )}
      {isHuman && Extra !== undefined && (
        <Suspense><Extra message={message} values={values} stored={props.storedValues} /></Suspense>
      )}
      {props.extra}
      {!growing && !isEdited && !isStep && (
        <div className="tools">
          {place !== undefined && place.versions.length > 1 && <Versions place={place} onShow={actions.show} />}
          {mayChange && isHuman && <button className="edits" onClick={() => setEdited(true)}>{t("edit")}</button>}
          {mayChange && !isHuman && (
            <button onClick={() => actions.repeat(message.id)}>{t("regenerate")}</button>
          )}
          {!isHuman && message.text.trim() !== "" && <CopyButton text={message.text} />}
        </div>
      )}
    </li>
  );
});

/** What an agent or a tool says. */
function Said({ message, values, growing, isLast, stored, Answer }: Props) {
  const { blocks, text, toolCalls } = message;
  // The stream leaves it out.
  const name = message.name || (typeof stored?.name === "string" ? stored.name : "");
  if (message.role === "tool") return <LoneResult name={name} blocks={blocks} isError={message.isError} />;
  const answer = Answer === undefined || text.trim() === "" ? undefined : (
    <Suspense fallback={<Text text={text} growing={growing} />}>
      <Answer message={message} stored={stored} values={values} isLast={isLast} growing={growing} />
    </Suspense>
  );
  return (
    <>
      {name !== "" && <span className="agent meta" translate="no">{name}</span>}
      <Blocks blocks={blocks} growing={growing && toolCalls.length === 0} answer={answer} />
      {toolCalls.map((call, i) => <Tool key={call.id || i} call={call} isBusy={growing} />)}
      {message.isUnfinished === true && <p className="meta">{t("unfinished")}</p>}
    </>
  );
}

const LONG = 3_000;

function Bubble({ message }: { message: Shown }) {
  const isLong = message.text.length > LONG;
  const files = message.blocks.filter((each) => each.kind !== "text");
  return (
    <>
      {message.text.trim() !== "" && (
        <div className={isLong ? "bubble long" : "bubble"} dir="auto" tabIndex={isLong ? 0 : undefined}>{message.text}</div>
      )}
      {files.length > 0 && <div className="row wrap files"><PlainBlocks blocks={files} /></div>}
    </>
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
