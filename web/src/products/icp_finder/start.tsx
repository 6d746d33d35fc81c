// Find the thread of a company, or make one.
import { useState } from "react";
import * as api from "../../api";
import { ago, t } from "../../i18n";
import { explain } from "../../problems";
import type { StartProps } from "..";

export default function Start({ assistant, onStarted }: StartProps) {
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
