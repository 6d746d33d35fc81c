// A new conversation with documents.
import { useState } from "react";
import * as api from "../../api";
import { Composer } from "../../composer";
import { explain } from "../../problems";
import type { StartProps } from "../props";
import { Documents } from "./documents";
import "./styles.css";
import { w } from "./words";

const TITLE = 80;

export default function Start({ assistant, onStarted }: StartProps) {
  const [problem, setProblem] = useState<unknown>(null);
  const begin = async (text: string): Promise<boolean> => {
    try {
      const made = await api.createThread(assistant.graph_id, text.slice(0, TITLE));
      onStarted(made.thread_id, assistant.graph_id, text);
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    }
  };
  return (
    <section className="conversation">
      <div className="scroller grow">
        <div className="start opening">
          <h1>{api.label(assistant.name)}</h1>
          <p className="hint">{w("start")}</p>
        </div>
        <section className="card" aria-label={w("documents")}><Documents /></section>
      </div>
      {problem !== null && <p className="alert banner" role="alert">{explain(problem)}</p>}
      <Composer place={`new:${assistant.graph_id}`} onSend={begin} />
    </section>
  );
}
