// Return to the learner's conversation, or begin one.
import { useEffect, useState } from "react";
import * as api from "../../api";
import { Opening } from "../../opening";
import { explain } from "../../problems";
import { First } from "../../first";
import type { StartProps } from "../props";
import { forget, kept } from "./kept";
import { w } from "./words";

export default function Start(props: StartProps) {
  const { assistant, onStarted } = props;
  const [known, setKnown] = useState(kept);
  const [problem, setProblem] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (known === null) return;
    let isHere = true;
    const found = async () => {
      try {
        await api.thread(known);
        if (isHere) onStarted(known, assistant.graph_id, "");
      } catch (error) {
        if (!isHere) return;
        if (isGone(error)) {
          forget();
          setKnown(null);
        } else setProblem(error);
      }
    };
    const timer = setTimeout(() => void found(), 0);
    return () => {
      isHere = false;
      clearTimeout(timer);
    };
    // `onStarted` is new at each drawing of the shell.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [assistant.graph_id, attempt, known]);
  if (known === null) return <First {...props} />;
  if (problem === null) return <p className="empty" role="status">{w("returning")} …</p>;
  const again = () => {
    setProblem(null);
    setAttempt(attempt + 1);
  };
  const begin = () => {
    forget();
    setKnown(null);
  };
  return (
    <Opening title={api.label(assistant.graph_id)} hint="">
      <p className="alert" role="alert">{explain(problem)}</p>
      <div className="actions">
        <button className="primary" onClick={again}>{w("again")}</button>
        <button onClick={begin}>{w("newConversation")}</button>
      </div>
    </Opening>
  );
}

function isGone(error: unknown): boolean {
  return error instanceof api.ApiError && error.status === 404;
}
