// The card of a question: what is asked, the facts that decide it, and a button for each answer.
import { useState } from "react";
import { t } from "../../i18n";
import { explain } from "../../problems";
import type { QuestionProps } from "../props";
import { factsOf, isKind, optionName, type Asked, type Option } from "./asked";
import { GREETING, openSession } from "./requests";
import "./styles.css";
import { w } from "./words";

export default function Question({ value, hasComposer, onAnswer, onStarted }: QuestionProps) {
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const [text, setText] = useState("");
  const asked = value as Asked;
  const act = async (work: () => Promise<unknown>) => {
    if (isSending) return;
    setSending(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error);
    }
    setSending(false);
  };
  const choose = (option: Option) =>
    void act(async () => {
      const request = option.value === "new" ? asked.details.new_session : undefined;
      const isTaken = await onAnswer({ choice: option.value, question: asked.id, label: optionName(asked.kind, option) });
      if (isTaken && request !== undefined) onStarted(await openSession(request), "icp_finder", GREETING, true);
    });
  const heading = isKind(asked.kind) ? w(asked.kind) : t("question");
  return (
    <section className="card stack accent question icp-question" aria-label={t("question")}>
      <h2>{heading}</h2>
      {(!isKind(asked.kind) || asked.kind === "offer") && <p>{asked.question}</p>}
      <Facts asked={asked} />
      <div className="actions">
        {/* Nothing says whose a website is, so no answer is the likely one. */}
        {asked.options.map((each, i) => (
          <button key={each.value} className={i === 0 && asked.kind !== "domain" ? "primary" : ""} disabled={isSending} onClick={() => choose(each)}>
            {optionName(asked.kind, each)}
          </button>
        ))}
      </div>
      {!hasComposer && (
        <form className="row wrap" onSubmit={(event) => {
          event.preventDefault();
          const words = text.trim();
          if (words !== "") void act(() => onAnswer(words));
        }}>
          <input className="grow" aria-label={w("otherWords")} placeholder={w("otherWords")} value={text}
            onChange={(event) => setText(event.target.value)} />
          <button disabled={isSending || text.trim() === ""}>{t("answer")}</button>
        </form>
      )}
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
    </section>
  );
}

function Facts({ asked }: { asked: Asked }) {
  const facts = factsOf(asked);
  return (
    <>
      {facts.length > 0 && (
        <dl>{facts.map(([name, fact]) => <div key={name}><dt>{name}</dt><dd>{fact}</dd></div>)}</dl>
      )}
      {isKind(asked.kind) && <p className="hint">{w(`${asked.kind}Fact`)}</p>}
    </>
  );
}

