// Interrupts: the questions of an assistant, and who has answered earlier ones.
import { lazy, Suspense, useState } from "react";
import { activeOf, type Fields, type Interrupt, type Run, type State } from "./api";
import { ago, t, wordsOf } from "./i18n";
import { messagesOf } from "./messages-of";
import { products } from "./products";
import type { QuestionProps } from "./products/props";
import { askedOf, optionOf, optionsOf, questionOf } from "./questions/asked";
import { w } from "./questions/words";
import { isFields } from "./schema-form/schema";
import { brief } from "./state/tree";

const Question = lazy(() => import("./questions/question"));

interface Props {
  graph: string;
  threadId: string;
  /** What waits for an answer in the thread. */
  questions: Interrupt[];
  /** Give the answers by the ids of their questions; false if the server refused them. */
  onAnswer: (answers: Fields) => Promise<boolean>;
  onStarted: QuestionProps["onStarted"];
  /** Whether a composer stands below, which takes an answer too. */
  hasComposer?: boolean;
}

/** Show questions as their product does, or as plain cards. Several are answered together: a run resumes once. */
export function Questions({ graph, threadId, questions, onAnswer, onStarted, hasComposer = false }: Props) {
  const [given, setGiven] = useState<Fields>({});
  const Card = products[graph]?.Question;
  const answer = async (id: string, value: unknown): Promise<boolean> => {
    const all = { ...given, [id]: value };
    const open = questions.filter((each) => !Object.hasOwn(all, each.id));
    if (open.length === 0) return onAnswer(Object.fromEntries(questions.map((each) => [each.id, all[each.id]])));
    setGiven(all);
    return true;
  };
  const again = (id: string) => setGiven(Object.fromEntries(Object.entries(given).filter(([known]) => known !== id)));
  if (questions.length === 0) return null;
  return (
    // It takes the focus when the composer, where the person was, makes room for it.
    <div className="stack questions" role="group" aria-label={t("question")} tabIndex={-1}>
      {questions.length > 1 && <p className="notice" role="status">{w("several")}</p>}
      {questions.map((each) => {
        const onOne = (value: unknown) => answer(each.id, value);
        if (Object.hasOwn(given, each.id)) return <Kept key={each.id} interrupt={each} onChange={() => again(each.id)} />;
        return (
          <Suspense key={each.id} fallback={<p className="hint" role="status">{t("loading")}</p>}>
            {Card === undefined
              ? <Question threadId={threadId} interrupt={each} onAnswer={onOne} />
              : <Card threadId={threadId} value={each.value} hasComposer={hasComposer} onAnswer={onOne} onStarted={onStarted} />}
          </Suspense>
        );
      })}
    </div>
  );
}

function Kept({ interrupt, onChange }: { interrupt: Interrupt; onChange: () => void }) {
  return (
    <section className="card row question" aria-label={t("question")}>
      <p className="grow">{wording(interrupt.value)} <span className="meta">{w("kept")}</span></p>
      <button className="small" autoFocus onClick={onChange}>{w("change")}</button>
    </section>
  );
}

/** Return the names of the calls that an interrupt asks about. */
function callsOf(value: unknown): string[] {
  const asked = askedOf({ value });
  return asked.kind === "actions" ? asked.actions.map((each) => each.name) : [];
}

const LONGEST = 120;

/** Return the words of an interrupt in one line: the names of the calls that it asks about, or its question. */
function wording(value: unknown): string {
  // Without the marks of Markdown.
  const line = questionOf(value).replace(/\*\*|`|^#+ /gm, "").trim().split("\n", 1)[0] ?? "";
  return callsOf(value).join(", ") || cut(line) || t("question");
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

export interface Given {
  id: string;
  /** The state at the time of the answer, if the history has it. */
  before: State | undefined;
  /** Whether it is older than the history, which has an end. */
  isOlder: boolean;
  /** What was answered, and to what. */
  text: string;
  /** The user, as the server has authenticated the request. */
  user: string | null;
  at: string;
}

/**
 * Return the answers to questions of a thread, oldest first, as the server has recorded them.
 *
 * @param takes says by the states of a run whether it has taken what it was given as an answer
 */
export function answersOf(runs: Run[], history: State[], takes: (states: State[]) => boolean = () => true): Given[] {
  const byId = new Map(history.map((state) => [state.checkpoint.checkpoint_id, state]));
  const asked = new Map<unknown, Interrupt[]>();
  for (const state of history) {
    const found = interruptsOf(byId.get(state.parent_checkpoint?.checkpoint_id ?? ""));
    if (found.length > 0) asked.set(state.metadata.run_id, found);
  }
  return runs
    .filter((run) => run.kwargs?.command?.resume != null)
    .filter((run) => takes(history.filter((state) => state.metadata.run_id === run.run_id)))
    .map((run) => {
      const before = history.find(({ created_at: at }) => at != null && at < run.created_at);
      // A run that goes on has no state yet. One that has ended without any was asked again, and its question is gone.
      const questions = asked.get(run.run_id) ?? (activeOf([run]).length > 0 ? interruptsOf(before) : []);
      const given = answersIn(run.kwargs?.command?.resume, questions);
      const user = run.kwargs?.config?.configurable?.langgraph_auth_user_id;
      return {
        id: run.run_id,
        before,
        isOlder: before === undefined && history.length > 0,
        text: given.map(([answer, question]) => said(answer, question)).join("; "),
        user: typeof user === "string" && user !== "" ? user : null,
        at: run.created_at,
      };
    })
    .reverse();
}

function interruptsOf(state: State | undefined): Interrupt[] {
  return state?.tasks?.flatMap((task) => task.interrupts ?? []) ?? [];
}

/**
 * Return the answers by the message below which they were given, of those that are shown; the others by null.
 *
 * Where there are messages, an answer that is older than the history is left out: nothing says where it was given.
 */
export function answersBelow(given: Given[], ids: ReadonlySet<string>): Map<string | null, Given[]> {
  const found = new Map<string | null, Given[]>();
  for (const each of given) {
    if (each.isOlder && ids.size > 0) continue;
    const known = messagesOf(each.before?.values).map((message) => String(message.id));
    const place = known.findLast((id) => ids.has(id)) ?? null;
    found.set(place, [...(found.get(place) ?? []), each]);
  }
  return found;
}

/** Return the answers of a resume, each with its question if the history has it. */
function answersIn(resume: unknown, questions: Interrupt[]): [unknown, Interrupt | undefined][] {
  const fields = isFields(resume) ? resume : {};
  const byId = questions.filter((each) => Object.hasOwn(fields, each.id));
  if (byId.length > 0) return byId.map((each) => [fields[each.id], each]);
  // By the id of an interrupt that the history has no longer.
  const only = Object.entries(fields).filter(([id]) => /^[0-9a-f]{32}$/.test(id));
  return only.length > 0 ? only.map(([, answer]) => [answer, questions[0]]) : [[resume, questions[0]]];
}

const decided = wordsOf(
  { approved: "approved", edited: "edited", rejected: "rejected", responded: "answered", ignored: "ignored" },
  { approved: "aprovada", edited: "alterada", rejected: "rejeitada", responded: "respondida", ignored: "ignorada" },
);
const DECIDED = {
  approve: "approved", accept: "approved", edit: "edited", reject: "rejected", respond: "responded", response: "responded",
  ignore: "ignored",
} as const;

function said(answer: unknown, asked: Interrupt | undefined): string {
  const fields = isFields(answer) ? answer : {};
  const made = (Array.isArray(fields.decisions) ? fields.decisions : Array.isArray(answer) ? answer : [answer]) as unknown[];
  const types = made.map((each) => (isFields(each) ? String(each.type) : ""));
  if (types.length > 0 && types.every((type): type is keyof typeof DECIDED => Object.hasOwn(DECIDED, type))) {
    const names = callsOf(asked?.value);
    return types.map((type, i) => (names[i] ? `${names[i]}: ` : "") + decided(DECIDED[type])).join(", ");
  }
  const given = "choice" in fields ? fields.choice : answer;
  const option = optionsOf(asked?.value).find((each) => each.value === given) ?? ("choice" in fields ? optionOf(given) : undefined);
  const question = asked === undefined ? "" : `${wording(asked.value)} `;
  // The label that the person has seen may be a translated one.
  const label = "choice" in fields && typeof fields.label === "string" ? fields.label : option?.label;
  return `${question}“${cut(label ?? brief(given))}” ${t("answered")}`;
}

const LAST = 5;

/** List the last answers, with the user and the time. */
export function Answers({ given }: { given: Given[] }) {
  if (given.length === 0) return null;
  return (
    <ul className="plain answers">
      {given.slice(-LAST).map((each) => (
        <li className="meta" key={each.id}>
          {each.text} {ago(each.at)}
          {each.user !== null && ` ${t("by")} ${each.user}`}
        </li>
      ))}
    </ul>
  );
}
