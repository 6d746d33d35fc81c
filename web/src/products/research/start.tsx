// The question of a new project.
import { useRef, useState } from "react";
import * as api from "../../api";
import { newId } from "../../ids";
import { onEnter } from "../../keys";
import { Opening } from "../../opening";
import { explain } from "../../problems";
import { titled } from "../../threads";
import type { StartProps } from "../props";
import * as client from "./client";
import { w } from "./words";

const LONGEST = 2_000;

export default function Start({ assistant, onStarted }: StartProps) {
  const [question, setQuestion] = useState("");
  const [isStarting, setStarting] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  // One id for one question: a repeated request starts nothing twice.
  const id = useRef(newId());
  const begin = async () => {
    const asked = question.trim();
    if (asked === "" || isStarting) return;
    setStarting(true);
    setProblem(null);
    try {
      await client.start(id.current, asked);
      await api.describe(id.current, { title: titled(asked) });
      onStarted(id.current, assistant.graph_id, "");
    } catch (error) {
      setProblem(error);
      setStarting(false);
    }
  };
  return (
    <Opening title={w("heading")} hint={w("hint")}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void begin();
        }}
      >
        <label className="hidden" htmlFor="research-question">{w("question")}</label>
        <textarea
          id="research-question"
          rows={3}
          autoFocus
          maxLength={LONGEST}
          value={question}
          placeholder={w("example")}
          onChange={(event) => {
            setQuestion(event.target.value);
            id.current = newId();
          }}
          onKeyDown={onEnter(() => void begin())}
        />
        <div className="actions">
          <button className="primary" disabled={isStarting || question.trim() === ""}>
            {w(isStarting ? "starting" : "begin")}
          </button>
        </div>
      </form>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
    </Opening>
  );
}
