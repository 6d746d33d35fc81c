// A new conversation: choose the assistant, then write, or begin as its product says.
import { Suspense, useRef, useState } from "react";
import * as api from "./api";
import { Composer } from "./composer";
import { t } from "./i18n";
import { Icon, productIcon } from "./icon";
import { explain } from "./problems";
import { products, type StartProps } from "./products";
import { go } from "./route";

interface Props {
  assistants: api.Assistant[] | null;
  chosen: string | null;
  onStarted: StartProps["onStarted"];
}

export function Start({ assistants, chosen, onStarted }: Props) {
  if (assistants === null) return <p className="empty" role="status">{t("loading")}</p>;
  const assistant = assistants.find((each) => each.graph_id === chosen);
  if (assistant === undefined) return <Choice assistants={assistants} />;
  const Begin = products[assistant.graph_id]?.Start ?? First;
  return (
    <Suspense>
      <Begin key={assistant.graph_id} assistant={assistant} onStarted={onStarted} />
    </Suspense>
  );
}

function Choice({ assistants }: { assistants: api.Assistant[] }) {
  return (
    <div className="page">
      <section className="start">
        <h1>{t("start")}</h1>
        {assistants.length === 0 && <p className="hint">{t("noAssistants")}</p>}
        <ul className="plain products">
          {assistants.map((each) => (
            <li key={each.assistant_id}>
              <button className="card" onClick={() => go({ assistant: each.graph_id })}>
                <Icon name={productIcon[each.graph_id] ?? "chat"} size={22} />
                <strong>{api.label(each.graph_id)}</strong>
                <span>{each.description}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

/** A new conversation that begins with a message. */
export function First({ assistant, onStarted }: StartProps) {
  const [problem, setProblem] = useState<unknown>(null);
  const made = useRef<string | null>(null);
  const begin = async (text: string): Promise<boolean> => {
    try {
      // A second attempt uses the thread of the first.
      made.current ??= (await api.createThread(assistant.graph_id, text.slice(0, 80))).thread_id;
      onStarted(made.current, assistant.graph_id, text);
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    }
  };
  return (
    <section className="conversation">
      <div className="page">
        <div className="start">
          <button className="quiet small" onClick={() => go({})}><Icon name="left" size={14} />{t("back")}</button>
          <h1>{api.label(assistant.graph_id)}</h1>
          <p className="hint">{assistant.description}</p>
          <p className="hint">{t("empty")}</p>
        </div>
      </div>
      <div className="below">
        {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
        <Composer place={`new:${assistant.graph_id}`} onSend={begin} />
      </div>
    </section>
  );
}
