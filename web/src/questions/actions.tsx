// Calls of tools that wait for a person: each is approved, edited, refused or answered, and all are sent at once.
import { useRef, useState } from "react";
import { SchemaForm, focusProblem } from "../schema-form/form";
import { emptied, problemsOf } from "../schema-form/problems";
import { clean, isFields, schemaOf, type Problems } from "../schema-form/schema";
import { onEnter } from "../keys";
import { Tree } from "../state/tree";
import { Text } from "../markdown";
import { detailsOf, onlyAsks, questionOf, type Action, type Decision, type Made } from "./asked";
import { useKept } from "./use-kept";
import { w } from "./words";

interface Props {
  actions: Action[];
  /** Where what is filled in is kept. */
  place: string;
  onDecide: (made: Made[]) => Promise<boolean>;
}

type Draft = Partial<Made>;

const NONE: Problems = new Map();

export default function Actions({ actions, place, onDecide }: Props) {
  const [drafts, setDrafts] = useKept<Draft[]>(place, () => actions.map((each) => only(each)));
  const [isSending, setSending] = useState(false);
  const [isRefused, setRefused] = useState(false);
  const [isTried, setTried] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const wrong = actions.map((each, i) => isTried && wrongIn(each, drafts[i]));
  const send = async (made: Draft[]) => {
    if (isSending) return;
    setTried(true);
    setRefused(false);
    if (actions.some((each, i) => wrongIn(each, made[i]))) {
      focusProblem(box.current);
      return;
    }
    setSending(true);
    const isTaken = await onDecide(made.map((each) => ({ ...(each as Made), args: clean(each.args) })));
    setSending(false);
    setRefused(!isTaken);
  };
  const change = (i: number, draft: Draft) => setDrafts(actions.map((_, at) => (at === i ? draft : (drafts[at] ?? {}))));
  const isOne = actions.length === 1;
  return (
    <div className="stack" ref={box}>
      {actions.map((each, i) => (
        <ActionCard
          key={i}
          action={each}
          number={numberOf(actions, i)}
          draft={drafts[i] ?? {}}
          isWrong={wrong[i] === true}
          isSending={isSending}
          onChange={(draft) => {
            change(i, draft);
            // Who has changed the arguments may mean these: then the card shows which ones are sent.
            const isMade = draft.type !== undefined && !needsMore(draft) && !isEdited(each, drafts[i]);
            if (isOne && isMade) void send([draft]);
          }}
          onEnter={isOne ? () => void send(drafts) : undefined}
        />
      ))}
      {isTried && !isOne && actions.some((each, i) => isUndecided(each, drafts[i])) && (
        <p className="wrong" role="alert">{w("choose")}</p>
      )}
      {isRefused && <p className="alert" role="alert">{w("notTaken")}</p>}
      {(!isOne || (drafts[0]?.type !== undefined && !isSending) || needsMore(drafts[0])) && (
        <button className="primary send" disabled={isSending} onClick={() => void send(drafts)}>
          {w(isOne ? "send" : "sendAll")}
        </button>
      )}
    </div>
  );
}

function numberOf(actions: Action[], i: number): number | undefined {
  const isSame = ({ name }: Action) => name === actions[i]?.name;
  return actions.filter(isSame).length > 1 ? actions.slice(0, i + 1).filter(isSame).length : undefined;
}

function isEdited({ args }: Action, draft: Draft = {}): boolean {
  return draft.type === "edit" && JSON.stringify(draft.args) !== JSON.stringify(args);
}

/** Return whether a decision needs more than its button. */
function needsMore(draft: Draft | undefined): boolean {
  return draft?.type === "edit" || draft?.type === "reject" || draft?.type === "respond";
}

/** Return the decision that is made already because there is no other. */
function only(action: Action): Draft {
  const { allowed, args } = action;
  if (onlyAsks(action)) return { type: "respond" };
  const draft: Draft = allowed.length === 1 && allowed[0] !== undefined ? { type: allowed[0], args } : {};
  return needsMore(draft) ? draft : {};
}

function problemsIn(action: Action, draft: Draft): Problems {
  return draft.type === "edit" ? problemsOf(action.schema ?? schemaOf(action.args), draft.args) : NONE;
}

function isUndecided({ allowed }: Action, { type }: Draft = {}): boolean {
  return type === undefined || !allowed.includes(type);
}

function wrongIn(action: Action, draft: Draft = {}): boolean {
  if (isUndecided(action, draft)) return true;
  if (draft.type === "respond") return (draft.text ?? "").trim() === "";
  return problemsIn(action, draft).size > 0;
}

interface CardProps {
  action: Action;
  /** Which one of several calls of the same tool it is. */
  number: number | undefined;
  draft: Draft;
  isWrong: boolean;
  isSending: boolean;
  onChange: (draft: Draft) => void;
  /** Send what is decided, if nothing else is to be. */
  onEnter: (() => void) | undefined;
}

function ActionCard({ action, number, draft, isWrong, isSending, onChange, onEnter: send }: CardProps) {
  const { args, description, allowed } = action;
  const name = `${action.name}${number === undefined ? "" : ` ${number}`}`;
  const choose = (type: Decision) => onChange({ ...draft, type, args: type === "edit" ? (draft.args ?? args) : draft.args });
  const hasText = draft.type === "reject" || draft.type === "respond";
  const isEmpty = isFields(args) && Object.keys(args).length === 0;
  // A tool that only asks the person: its question, and a field.
  const isQuestion = onlyAsks(action);
  const offered = isQuestion ? allowed.filter((each) => each !== "respond") : allowed;
  const own = withoutCall(description);
  const text = own === "" && isQuestion ? questionOf(args) : own;
  const rest = isQuestion && isFields(args) && questionOf(args) === text ? detailsOf(args) : args;
  return (
    <section className="action stack" aria-label={`${w("action")}: ${name}`}>
      {!isQuestion && <h3><code>{action.name}</code></h3>}
      {text !== "" && <Text text={text} growing={false} />}
      {draft.type === "edit" ? (
        <SchemaForm
          schema={action.schema ?? schemaOf(args)}
          label={`${w("arguments")}: ${name}`}
          value={draft.args}
          problems={new Map([...emptied(args, draft.args), ...(isWrong ? problemsIn(action, draft) : NONE)])}
          onChange={(changed) => onChange({ ...draft, args: changed })}
        />
      ) : isEmpty && !isQuestion ? <p className="hint">{w("noArguments")}</p> : rest !== undefined && !isEmpty && <Tree value={rest} />}
      {offered.length > 0 && (
        <div className={`row wrap${isWrong && isUndecided(action, draft) ? " undecided" : ""}`} role="group" aria-label={`${w("decision")}: ${name}`}>
          {offered.map((each) => (
            <button
              key={each}
              type="button"
              disabled={isSending}
              aria-pressed={draft.type === each}
              onClick={() => choose(isQuestion && draft.type === each ? "respond" : each)}
            >
              {w(each)}
            </button>
          ))}
        </div>
      )}
      {isWrong && isUndecided(action, draft) && <p className="wrong">{w("chooseOne")}</p>}
      {hasText && (
        <label className="field">
          <span>{w(isQuestion ? "yourAnswer" : draft.type === "reject" ? "reason" : "reply")}</span>
          <textarea
            dir="auto"
            rows={2}
            value={draft.text ?? ""}
            aria-invalid={isWrong || undefined}
            onChange={(event) => onChange({ ...draft, text: event.target.value })}
            onKeyDown={send && onEnter(send)}
          />
        </label>
      )}
      {isWrong && draft.type === "respond" && <p className="wrong">{w("fillReply")}</p>}
    </section>
  );
}

const STANDARD = "Tool execution requires approval";

/** Return a description without the call that the middleware repeats in it, and without the words that it has by default. */
function withoutCall(description: string): string {
  const own = description.replace(/\n+Tool: [\s\S]*\n+Args: [\s\S]*$/, "").trim();
  return own === STANDARD ? "" : own;
}
