// The question for missing evidence. What is written, pasted or uploaded is the answer; a button says that there is no more.
import { useState } from "react";
import { t } from "../../i18n";
import { Text } from "../../markdown";
import { optionsOf, questionOf } from "../../questions/asked";
import type { QuestionProps } from "../props";
import "./styles.css";
import { w } from "./words";

// What the server offers, in its own words.
const KNOWN: Record<string, "noMore"> = { no: "noMore" };

export default function Question({ value, onAnswer }: QuestionProps) {
  const [isSending, setSending] = useState(false);
  const [isRefused, setRefused] = useState(false);
  const [text, setText] = useState("");
  const send = async (answer: unknown) => {
    if (isSending) return;
    setSending(true);
    setRefused(false);
    const isTaken = await onAnswer(answer);
    setSending(false);
    setRefused(!isTaken);
  };
  return (
    <section className="card stack accent question diagnosis-question" aria-label={t("question")}>
      <h2>{t("question")}</h2>
      {/* In a conversation the last message says it, and the composer takes the answer. */}
      <div className="elsewhere"><Text text={questionOf(value)} growing={false} /></div>
      <p className="here">{w("giveMore")}</p>
      <form
        className="row wrap elsewhere"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") void send(text.trim());
        }}
      >
        <textarea
          className="grow"
          rows={1}
          dir="auto"
          aria-label={w("yourAnswer")}
          placeholder={w("yourAnswer")}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button disabled={isSending || text.trim() === ""}>{t("answer")}</button>
      </form>
      <div className="actions">
        {optionsOf(value).map((each) => (
          <button key={each.label} disabled={isSending} onClick={() => void send(each.value)}>
            {KNOWN[String(each.value)] === undefined ? each.label : w("noMore")}
          </button>
        ))}
      </div>
      {isRefused && <p className="alert" role="alert">{w("notTaken")}</p>}
    </section>
  );
}
