// Interrupts: the question of an assistant, and who has answered earlier ones.
import { Suspense, useState } from "react";
import type { Fields, Run, State } from "./api";
import { ago, t } from "./i18n";
import { Text } from "./markdown";
import { products } from "./products";
import type { QuestionProps } from "./products/props";

interface Props {
  value: unknown;
  /** Give an answer; false if the server refused it. */
  onAnswer: (answer: unknown) => Promise<boolean>;
}

interface AskProps extends Props {
  graph: string;
  threadId: string;
  onStarted: QuestionProps["onStarted"];
}

/** Show a question as its product does, or as a plain card. */
export function Ask({ graph, ...props }: AskProps) {
  const Card = products[graph]?.Question;
  if (Card === undefined) return <Question value={props.value} onAnswer={props.onAnswer} />;
  return <Suspense><Card {...props} /></Suspense>;
}

export function Question({ value, onAnswer }: Props) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const answer = async (given: string) => {
    if (isSending) return;
    setSending(true);
    if (!(await onAnswer(given))) setSending(false);
  };
  return (
    <section className="card accent stack question" aria-label={t("question")}>
      <h2>{t("question")}</h2>
      <Text text={wording(value)} growing={false} />
      <div className="row wrap">
        {optionsOf(value).map((each) => (
          <button key={each.value} disabled={isSending} onClick={() => void answer(each.value)}>{each.label}</button>
        ))}
      </div>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") void answer(text.trim());
        }}
      >
        <input
          className="grow"
          aria-label={t("other")}
          placeholder={t("other")}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button className="primary" disabled={isSending || text.trim() === ""}>{t("answer")}</button>
      </form>
    </section>
  );
}

/** Return the words of an interrupt's value. */
export function wording(value: unknown): string {
  if (typeof value === "string") return value;
  const fields = (typeof value === "object" && value !== null ? value : {}) as Fields;
  for (const key of ["question", "message", "text"]) {
    if (typeof fields[key] === "string") return fields[key];
  }
  return `\`\`\`\n${JSON.stringify(value, null, 2)}\n\`\`\``;
}

interface Option {
  value: string;
  label: string;
}

function optionsOf(value: unknown): Option[] {
  const found = typeof value === "object" && value !== null ? (value as Fields).options : undefined;
  return Array.isArray(found) ? (found as unknown[]).map(option) : [];
}

function option(each: unknown): Option {
  if (typeof each === "string") return { value: each, label: each.charAt(0).toLocaleUpperCase() + each.slice(1) };
  const fields = (each ?? {}) as Fields;
  const value = String(fields.id ?? fields.value ?? fields.label);
  return { value, label: String(fields.label ?? value) };
}

export interface Given {
  id: string;
  question: string | null;
  answer: string;
  /** The user, as the server has authenticated the request. */
  user: string | null;
  at: string;
}

/** Return the answers to questions of a thread, oldest first, as the server has recorded them. */
export function answersOf(runs: Run[], history: State[]): Given[] {
  const byId = new Map(history.map((state) => [state.checkpoint.checkpoint_id, state]));
  const asked = new Map<unknown, unknown>();
  for (const state of history) {
    const before = byId.get(state.parent_checkpoint?.checkpoint_id ?? "");
    const value = before?.tasks?.flatMap((task) => task.interrupts ?? [])[0]?.value;
    if (value !== undefined) asked.set(state.metadata.run_id, value);
  }
  return runs
    .filter((run) => run.kwargs?.command?.resume != null)
    .map((run) => {
      const value = asked.get(run.run_id);
      const user = run.kwargs?.config?.configurable?.langgraph_auth_user_id;
      return {
        id: run.run_id,
        question: value === undefined ? null : wording(value),
        answer: answerOf(run.kwargs?.command?.resume, value),
        user: typeof user === "string" ? user : null,
        at: run.created_at,
      };
    })
    .reverse();
}

function answerOf(resume: unknown, question: unknown): string {
  if (typeof resume === "string") return resume;
  // By the id of the interrupt.
  const values = typeof resume === "object" && resume !== null ? Object.values(resume) : [];
  const first: unknown = values.length === 1 ? values[0] : resume;
  if (typeof first === "string") return first;
  const choice = (first as Fields | null)?.choice;
  if (typeof choice !== "string") return JSON.stringify(first);
  return (optionsOf(question).find((each) => each.value === choice) ?? option(choice)).label;
}

const LAST = 5;

/** List the last answers, with the user and the time. */
export function Answers({ given }: { given: Given[] }) {
  if (given.length === 0) return null;
  return (
    <ul className="plain answers">
      {given.slice(-LAST).map((each) => (
        <li className="meta" key={each.id}>
          {each.question !== null && `${each.question} `}
          “{each.answer}” {t("answered")} {ago(each.at)}
          {each.user !== null && ` ${t("by")} ${each.user}`}
        </li>
      ))}
    </ul>
  );
}
