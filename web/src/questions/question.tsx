// The card of a question of any graph: what is asked, and an answer of the right type.
import { useEffect, useRef, useState } from "react";
import type { Interrupt } from "../api";
import { draft } from "../drafts";
import { Fold } from "../fold";
import { t } from "../i18n";
import { onEnter } from "../keys";
import { Text } from "../markdown";
import { JsonInput, numberOf } from "../schema-form/field";
import { focusProblem, SchemaForm } from "../schema-form/form";
import { problemsOf } from "../schema-form/problems";
import { clean, initial, isFields, shapeOf, Unparsed, type Schema } from "../schema-form/schema";
import { Tree } from "../state/tree";
import Actions from "./actions";
import { askedOf, detailsOf, meantBy, onlyAsks, questionOf, type Asked, type Option } from "./asked";
import "./styles.css";
import { placeOf, useKept } from "./use-kept";
import { w } from "./words";

interface Props {
  threadId: string;
  interrupt: Interrupt;
  /** Give an answer; false if the server refused it. */
  onAnswer: (answer: unknown) => Promise<boolean>;
}

export default function Question({ threadId, interrupt, onAnswer }: Props) {
  const { value } = interrupt;
  const asked = askedOf(interrupt);
  const words = questionOf(value);
  const place = placeOf(threadId, value);
  // What is in the composer is no answer, and neither is the rest of it.
  const isNext = draft(threadId) === "";
  if (asked.kind === "actions") {
    const isAsking = asked.actions.every(onlyAsks);
    return (
      <Card title={isAsking ? t("question") : w("approval")} isWritten={isAsking && asked.actions.length === 1 && isNext}>
        <Actions actions={asked.actions} place={place} onDecide={(made) => onAnswer(asked.reply(made))} />
      </Card>
    );
  }
  const details = detailsOf(value);
  return (
    <Card title={t("question")} isWritten={isWritten(asked) && isNext}>
      {words !== "" && <Text text={words} growing={false} />}
      {details !== undefined && <Details value={details} />}
      {asked.kind === "form"
        ? <FormAnswer schema={asked.schema} place={place} onAnswer={onAnswer} />
        : <OpenAnswer {...asked} details={details} place={place} onAnswer={onAnswer} />}
    </Card>
  );
}

const MARKS = /\n|\*\*|`|^#{1,6} /;

/** What a question shows beside its words: texts with the marks of Markdown as such. */
function Details({ value }: { value: unknown }) {
  const fields = isFields(value) ? Object.entries(value) : [];
  const texts = fields.filter((each): each is [string, string] => typeof each[1] === "string" && MARKS.test(each[1]));
  const rest = texts.length === 0 ? value : Object.fromEntries(fields.filter(([name]) => !texts.some(([text]) => text === name)));
  return (
    <div className="details stack" role="group" aria-label={w("details")}>
      {!(texts.length === fields.length && texts.length > 0) && <Tree value={rest} />}
      {texts.map(([name, text]) => (
        <section key={name} className="stack tight" aria-label={name}>
          <h3 className="label">{name}</h3>
          <Text text={text} growing={false} />
        </section>
      ))}
    </div>
  );
}

/** Return whether a question is answered by writing into one field. */
function isWritten(asked: Asked): boolean {
  if (asked.kind === "form") return ["text", "number", "integer"].includes(shapeOf(asked.schema, asked.schema).kind);
  return asked.kind === "open" && asked.options.length === 0;
}

interface CardProps {
  title: string;
  /** Whether what a person writes next is the answer, if the questions have the focus. */
  isWritten: boolean;
  children: React.ReactNode;
}

function Card({ title, isWritten, children }: CardProps) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    const around = card.current?.closest(".questions");
    const isIn = around != null && around === (around.getRootNode() as Document | ShadowRoot).activeElement;
    if (isWritten && isIn) card.current?.querySelector<HTMLElement>("textarea, input")?.focus({ preventScroll: true });
  }, [isWritten]);
  return (
    <section className="card accent stack question" aria-label={title} ref={card}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Send one answer at a time, and say if it was not taken. */
function useSending(onAnswer: Props["onAnswer"]) {
  const [isSending, setSending] = useState(false);
  const [isRefused, setRefused] = useState(false);
  const send = async (answer: unknown) => {
    if (isSending) return;
    setSending(true);
    setRefused(false);
    const isTaken = await onAnswer(answer);
    setSending(false);
    setRefused(!isTaken);
  };
  return { isSending, isRefused, send };
}

interface AnswerProps {
  place: string;
  onAnswer: Props["onAnswer"];
}

function FormAnswer({ schema, place, onAnswer }: AnswerProps & { schema: Schema }) {
  const [value, setValue] = useKept<unknown>(place, () => initial(schema, schema));
  const [isTried, setTried] = useState(false);
  const { isSending, isRefused, send } = useSending(onAnswer);
  const form = useRef<HTMLFormElement>(null);
  const problems = isTried ? problemsOf(schema, value) : new Map<string, never>();
  return (
    <form
      ref={form}
      className="stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (problemsOf(schema, value).size > 0) focusProblem(form.current);
        else void send(clean(value));
      }}
    >
      <SchemaForm schema={schema} label={w("yourAnswer")} value={value} problems={problems} onChange={setValue} />
      {isRefused && <p className="alert" role="alert">{w("notTaken")}</p>}
      <button className="primary send" disabled={isSending}>{t("answer")}</button>
    </form>
  );
}

interface Typed {
  text: string;
  json: unknown;
  as: "text" | "number" | "json";
}

interface OpenProps extends AnswerProps {
  options: Option[];
  isFree: boolean;
  details: unknown;
}

/** Buttons for the answers that are offered, and an answer of one's own. */
function OpenAnswer({ options, isFree, onAnswer, ...own }: OpenProps) {
  const { isSending, isRefused, send } = useSending(onAnswer);
  if (options.length === 0) return <OwnAnswer {...own} label={w("yourAnswer")} options={options} onAnswer={onAnswer} />;
  return (
    <>
      <div className="row wrap options">
        {options.map((each, i) => (
          <button key={i} type="button" disabled={isSending} onClick={() => void send(each.value)}>{labelOf(each)}</button>
        ))}
      </div>
      {isRefused && <p className="alert" role="alert">{w("notTaken")}</p>}
      {isFree && (
        <Fold summary={<summary>{t("other")}</summary>}>
          <OwnAnswer {...own} label={t("other")} details={undefined} options={options} onAnswer={onAnswer} />
        </Fold>
      )}
    </>
  );
}

/** An answer as text, as a number or as JSON. */
function OwnAnswer({ label, options, details, place, onAnswer }: Omit<OpenProps, "isFree"> & { label: string }) {
  const [typed, setTyped] = useKept<Typed>(place, () => ({ text: "", json: undefined, as: "text" }));
  const [isTried, setTried] = useState(false);
  const { isSending, isRefused, send } = useSending(onAnswer);
  const given = draftOf(details);
  const words = typed.text.trim();
  const named = options.map((each) => ({ ...each, label: labelOf(each) }));
  const answer =
    typed.as === "json" ? typed.json : typed.as === "number" ? numberOf(words, "number") : meantBy(words, named);
  const isEmpty = typed.as === "json" ? answer === undefined : words === "";
  const isSendable = !isEmpty && answer !== undefined && !(answer instanceof Unparsed);
  const isBad = isTried && !isEmpty && !isSendable;
  return (
    <form
      className="stack own"
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (isSendable) void send(answer);
      }}
    >
      {typed.as === "json" ? (
        <JsonInput
          marks={{ "aria-label": `${label} (JSON)`, "aria-invalid": isBad || undefined }}
          value={typed.json}
          onChange={(json) => setTyped({ ...typed, json })}
        />
      ) : (
        <textarea
          dir="auto"
          rows={Math.min(Math.max(typed.text.split("\n").length, typed.text.length > 80 ? 3 : 1), 12)}
          aria-label={label}
          aria-invalid={isBad || undefined}
          placeholder={label}
          value={typed.text}
          onChange={(event) => setTyped({ ...typed, text: event.target.value })}
          onKeyDown={onEnter(({ form }) => form?.requestSubmit())}
        />
      )}
      {isBad && <p className="wrong" role="alert">{w(BAD[typed.as])}</p>}
      {isRefused && <p className="alert" role="alert">{w("notTaken")}</p>}
      <div className="row wrap">
        <button className="primary" disabled={isSending || isEmpty}>{t("answer")}</button>
        <label className="row kind">
          <span className="hidden">{w("kind")}</span>
          <select
            className="small"
            value={typed.as}
            onChange={(event) => setTyped({ ...typed, as: event.target.value as Typed["as"] })}
          >
            <option value="text">{w("asText")}</option>
            <option value="number">{w("asNumber")}</option>
            <option value="json">{w("asJson")}</option>
          </select>
        </label>
        {given !== undefined && typed.as === "text" && typed.text === "" && (
          <button type="button" className="small" onClick={() => setTyped({ ...typed, text: given })}>{w("startFrom")}</button>
        )}
      </div>
    </form>
  );
}

const BAD = { text: "badChoice", number: "badNumber", json: "badJson" } as const;

function labelOf({ label }: Option): string {
  const known = new Map([["yes", w("yes")], ["no", w("no")], ["approve", w("approve")], ["reject", w("reject")], ["continue", t("proceed")]]);
  return known.get(label) ?? label;
}

/** Return the one text that a question shows: often it is to be corrected. */
function draftOf(details: unknown): string | undefined {
  const texts = isFields(details) ? Object.values(details).filter((each) => typeof each === "string" && each.includes(" ")) : [];
  return texts.length === 1 ? (texts[0] as string) : undefined;
}
