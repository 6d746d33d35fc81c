// Interrupts: the question of an assistant, and who has answered earlier ones.
import { Suspense, useState } from "react";
import type { Fields, Run } from "./api";
import { ago, t } from "./i18n";
import { Text } from "./markdown";
import { products, type QuestionProps } from "./products";

/** Show a question as its product does, or as a plain card. */
export function Ask({ graph, ...props }: QuestionProps & { graph: string }) {
  const Card = products[graph]?.Question ?? Question;
  return <Suspense><Card {...props} /></Suspense>;
}

function Question({ value, onAnswer }: QuestionProps) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const fields = (typeof value === "object" && value !== null ? value : {}) as Fields;
  const wording = typeof fields.question === "string" ? fields.question : typeof value === "string" ? value : JSON.stringify(value);
  const options = Array.isArray(fields.options) ? (fields.options as unknown[]).map(option) : [];
  const answer = async (given: string) => {
    setSending(true);
    await onAnswer(given, given);
    setSending(false);
  };
  return (
    <section className="card question" aria-label={t("question")}>
      <h2>{t("question")}</h2>
      <Text text={wording} growing={false} />
      <div className="row wrap">
        {options.map((each) => (
          <button key={each.value} className="primary" disabled={isSending} onClick={() => void answer(each.value)}>{each.label}</button>
        ))}
      </div>
      <form className="row" onSubmit={(event) => { event.preventDefault(); if (text.trim() !== "") void answer(text.trim()); }}>
        <input className="grow" aria-label={t("other")} placeholder={t("other")} value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={isSending || text.trim() === ""}>{t("answer")}</button>
      </form>
    </section>
  );
}

function option(each: unknown): { value: string; label: string } {
  if (typeof each === "string") return { value: each, label: each.charAt(0).toLocaleUpperCase() + each.slice(1) };
  const fields = (each ?? {}) as Fields;
  const value = String(fields.id ?? fields.value ?? fields.label);
  return { value, label: String(fields.label ?? value) };
}

/** List the last answers to questions, with the user and time that the server has recorded. */
export function Answers({ runs }: { runs: Run[] }) {
  const given = runs.filter((run) => typeof run.metadata.answer === "string").slice(0, 3).reverse();
  return (
    <>
      {given.map((run) => {
        const user = run.kwargs?.config?.configurable?.langgraph_auth_user_id;
        return (
          <p className="meta" key={run.run_id}>
            “{String(run.metadata.answer)}” {t("answered")} {ago(run.created_at)}
            {typeof user === "string" && ` ${t("by")} ${user}`}
          </p>
        );
      })}
    </>
  );
}
