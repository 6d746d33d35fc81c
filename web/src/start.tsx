// A new conversation: choose the assistant, then write, or begin as its product says.
import { Suspense, useState } from "react";
import * as api from "./api";
import { Composer } from "./composer";
import { t } from "./i18n";
import { explain } from "./problems";
import { products, type StartProps } from "./products";
import { go } from "./route";

interface Props {
  assistants: api.Assistant[] | null;
  chosen: string | null;
  onStarted: (thread: string, assistant: string, text: string) => void;
}

export function Start({ assistants, chosen, onStarted }: Props) {
  const assistant = assistants?.find((each) => each.graph_id === chosen);
  if (assistants === null) return <p className="empty" role="status">{t("loading")}</p>;
  if (assistant === undefined) {
    return (
      <section className="start">
        <h1>{t("start")}</h1>
        <ul className="products">
          {assistants.map((each) => (
            <li key={each.assistant_id}>
              <button className="card" onClick={() => go({ assistant: each.graph_id })}>
                <strong>{api.label(each.name)}</strong>
                <span>{each.description}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
    );
  }
  const Begin = products[assistant.graph_id]?.Start ?? First;
  return <Suspense><Begin key={assistant.graph_id} assistant={assistant} onStarted={onStarted} /></Suspense>;
}

/** A new conversation that begins with a message. */
export function First({ assistant, onStarted }: StartProps) {
  const [problem, setProblem] = useState<unknown>(null);
  const begin = async (text: string): Promise<boolean> => {
    try {
      const made = await api.createThread(assistant.graph_id, text.slice(0, 80));
      onStarted(made.thread_id, assistant.graph_id, text);
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    }
  };
  return (
    <section className="conversation">
      <div className="start grow">
        <h1>{api.label(assistant.name)}</h1>
        <p className="hint">{assistant.description}</p>
        <p className="hint">{t("empty")}</p>
      </div>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      <Composer onSend={begin} />
    </section>
  );
}
