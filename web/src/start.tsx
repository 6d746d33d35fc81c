// A new conversation: choose the assistant, then write; the ICP finder first finds its thread.
import { useState } from "react";
import * as api from "./api";
import { Composer } from "./composer";
import { ago, t } from "./i18n";
import { explain } from "./problems";
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
  return assistant.graph_id === "icp_finder" ? (
    <Resolve key={assistant.graph_id} assistant={assistant} onStarted={onStarted} />
  ) : (
    <First key={assistant.graph_id} assistant={assistant} onStarted={onStarted} />
  );
}

function First({ assistant, onStarted }: { assistant: api.Assistant; onStarted: Props["onStarted"] }) {
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

function Resolve({ assistant, onStarted }: { assistant: api.Assistant; onStarted: Props["onStarted"] }) {
  const [website, setWebsite] = useState("");
  const [choice, setChoice] = useState<api.Resolution | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [isAsking, setAsking] = useState(false);
  const open = (id: unknown) => onStarted(String(id), assistant.graph_id, "");
  const ask = async () => {
    setAsking(true);
    try {
      const found = await api.resolve(assistant.graph_id, website.trim());
      const id = found.thread_id;
      if (found.action === "choose" || id === undefined) setChoice(found);
      else {
        const text = website.trim();
        onStarted(id, assistant.graph_id, found.action === "create" && text !== "" ? text : "");
      }
      setProblem(null);
    } catch (error) {
      setProblem(error);
    } finally {
      setAsking(false);
    }
  };
  return (
    <section className="start">
      <h1>{api.label(assistant.name)}</h1>
      <p className="hint">{assistant.description}</p>
      <form className="row" onSubmit={(event) => { event.preventDefault(); void ask(); }}>
        <label className="grow">
          {t("website")}
          <input value={website} placeholder="example.com" inputMode="url" onChange={(event) => setWebsite(event.target.value)} />
        </label>
        <button className="primary" disabled={isAsking}>{t("begin")}</button>
      </form>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      {choice !== null && (
        <div className="card">
          <p>{choice.message ?? t("choose")}</p>
          <ul className="plain">
            {(choice.candidates ?? []).map((each) => (
              <li key={String(each.thread_id)}>
                <button className="entry" onClick={() => open(each.thread_id)}>
                  <span>{String(each.website ?? each.rule_name ?? each.title ?? each.thread_id)}</span>
                  {typeof each.updated_at === "string" && <span className="meta">{ago(each.updated_at)}</span>}
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}
