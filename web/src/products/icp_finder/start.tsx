// Find the thread of a company, choose among several, or make a fresh one.
import { useState } from "react";
import * as api from "../../api";
import { ago, t } from "../../i18n";
import { Opening } from "../../opening";
import { explain } from "../../problems";
import type { StartProps } from "../props";
import { GREETING, openFresh } from "./requests";
import "./styles.css";
import { w } from "./words";

export default function Start({ assistant, onStarted }: StartProps) {
  const [website, setWebsite] = useState("");
  const [choice, setChoice] = useState<api.Resolution | null>(null);
  const [isFresh, setFresh] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const [isAsking, setAsking] = useState(false);
  const agent = assistant.graph_id;
  const wanted = website.trim();
  const act = async (work: () => Promise<void>) => {
    if (isAsking) return;
    setAsking(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error);
    }
    setAsking(false);
  };
  // The person has written a website, and no greeting.
  const begin = (id: string) =>
    wanted === "" ? onStarted(id, agent, GREETING, true) : onStarted(id, agent, `Our website is ${wanted}`);
  const resolve = () =>
    act(async () => {
      const found = await api.resolve(agent, wanted);
      const id = found.thread_id;
      if (found.action === "choose" || id === undefined) setChoice(found);
      else if (found.action === "create") begin(id);
      else onStarted(id, agent, "");
    });
  const open = () => act(async () => begin(await openFresh(agent, wanted)));
  return (
    <Opening title={api.label(assistant.graph_id)} hint={w("startHint")}>
      <form className="stack" onSubmit={(event) => { event.preventDefault(); void resolve(); }}>
        <label className="field">
          <span>{w("website")}</span>
          <input value={website} placeholder="example.com" inputMode="url" autoComplete="url" autoFocus
            onChange={(event) => { setWebsite(event.target.value); setChoice(null); }} />
          <span className="meta">{w("websiteHint")}</span>
        </label>
        <div className="actions">
          <button className="primary" disabled={isAsking}>{isAsking ? `${w("looking")} …` : w("begin")}</button>
          <button type="button" disabled={isAsking} onClick={() => setFresh(true)}>{w("fresh")}</button>
        </div>
      </form>
      {isFresh && (
        <div className="card stack" role="alertdialog" aria-label={w("fresh")}>
          <p>{w("reallyFresh")}</p>
          <div className="actions">
            <button className="primary" disabled={isAsking} onClick={() => void open()}>{w("fresh")}</button>
            <button autoFocus onClick={() => setFresh(false)}>{t("cancel")}</button>
          </div>
        </div>
      )}
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      {choice !== null && (
        <Chooser candidates={choice.candidates ?? []} onOpen={(id) => onStarted(id, agent, "")} />
      )}
    </Opening>
  );
}

function Chooser({ candidates, onOpen }: { candidates: api.Fields[]; onOpen: (id: string) => void }) {
  return (
    <section className="card stack" aria-label={w("chooseHint")}>
      <p role="status">{w("chooseHint")}</p>
      <ul className="plain stack tight">
        {candidates.map((each) => (
          <li key={String(each.thread_id)}>
            <button className="icp-choice" onClick={() => onOpen(String(each.thread_id))}>
              <span className="grow clip">{String(each.label)}</span>
              {typeof each.updated_at === "string" && <span className="meta">{ago(each.updated_at)}</span>}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
