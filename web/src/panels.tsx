// What a product shows beside its messages: candidates, summary of mistakes, sources.
import { useState } from "react";
import * as api from "./api";
import { t } from "./i18n";
import { explain } from "./problems";

interface Props { graph: string; values: api.Fields; threadId: string }

export function Panel({ graph, values, threadId }: Props) {
  if (graph === "icp_finder") return <Icp values={values} />;
  if (graph === "tutor") return <Summary values={values} threadId={threadId} />;
  if (graph === "chat") return <Sources values={values} />;
  return null;
}

interface Candidate { key: string; name: string; website: string | null; industry: string; region: string; source: string; score: number; parts: Record<string, unknown> }

function Icp({ values }: { values: api.Fields }) {
  const [problem, setProblem] = useState<unknown>(null);
  const candidates = (Array.isArray(values.candidates) ? values.candidates : []) as Candidate[];
  const icp = values.icp as api.Fields | null | undefined;
  const enrichment = values.enrichment as { now: string[]; queued: number } | null | undefined;
  if (candidates.length === 0 && !icp) return null;
  return (
    <section className="panel">
      {icp && (
        <section className="card" aria-label={t("profile")}>
          <h2>{t("profile")}</h2>
          <dl>
            {Object.entries(icp).filter(([, value]) => Array.isArray(value) ? value.length > 0 : Boolean(value)).map(([key, value]) => (
              <div key={key}><dt>{key}</dt><dd>{Array.isArray(value) ? value.map(plain).join(", ") : plain(value)}</dd></div>
            ))}
          </dl>
        </section>
      )}
      {candidates.length > 0 && (
        <section className="card" aria-label={t("candidates")}>
          <header className="row">
            <h2 className="grow">{t("candidates")}</h2>
            <button onClick={() => {
              setProblem(null);
              api.download("/export/latest_scores.csv", "scores.csv").catch(setProblem);
            }}>{t("exportCsv")}</button>
          </header>
          {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
          {enrichment && <p className="hint">{t("enrichment")}: {enrichment.now.length} {t("done")}, {enrichment.queued} {t("more")}</p>}
          <div className="scroll" tabIndex={0}>
            <table>
              <thead><tr><th>{t("company")}</th><th className="number">{t("score")}</th><th>{t("why")}</th></tr></thead>
              <tbody>
                {candidates.map((each) => (
                  <tr key={each.key}>
                    <td>{each.website ? <a href={secure(each.website)} target="_blank" rel="noopener noreferrer">{each.name}</a> : each.name}
                      <span className="meta">{[each.industry, each.region, each.source].filter(Boolean).join(" · ")}</span></td>
                    <td className="number">{each.score.toFixed(2)}</td>
                    <td className="meta">{Object.entries(each.parts).filter((part): part is [string, number] => typeof part[1] === "number" && part[1] !== 0)
                      .sort((a, b) => b[1] - a[1]).map(([name, value]) => `${name} ${value.toFixed(2)}`).join(", ")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </section>
  );
}

function plain(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  const fields = (value ?? {}) as api.Fields;
  for (const key of ["name", "domain", "website", "title", "code"]) {
    if (typeof fields[key] === "string") return fields[key];
  }
  return JSON.stringify(value);
}

function secure(website: string): string {
  return `https://${website.replace(/^[a-z]+:\/\//i, "")}`;
}

function Summary({ values, threadId }: { values: api.Fields; threadId: string }) {
  const [found, setFound] = useState<api.Fields | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  if (!Array.isArray(values.corrections) || values.corrections.length === 0) return null;
  const counts = (found?.counts ?? found?.by_type ?? {}) as Record<string, unknown>;
  const advice = found?.advice;
  return (
    <section className="panel">
      <button onClick={() => void api.summary(threadId).then(setFound, setProblem)}>{t("summary")}</button>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      {found !== null && (
        <div className="card">
          <dl>{Object.entries(counts).map(([kind, n]) => <div key={kind}><dt>{kind}</dt><dd>{String(n)}</dd></div>)}</dl>
          {Array.isArray(advice) ? <ul>{advice.map((each, i) => <li key={i}>{String(each)}</li>)}</ul>
            : typeof advice === "string" && <p>{advice}</p>}
        </div>
      )}
    </section>
  );
}

interface Citation { number: number; title: string; section: string; text: string }

function Sources({ values }: { values: api.Fields }) {
  const citations = (Array.isArray(values.citations) ? values.citations : []) as Citation[];
  if (citations.length === 0) return null;
  return (
    <section className="panel sources" aria-label={t("sources")}>
      <h2>{t("sources")}</h2>
      {citations.map((each) => (
        <details key={each.number} className="card">
          <summary>[{each.number}] {each.title}{each.section && ` — ${each.section}`}</summary>
          <blockquote>{each.text}</blockquote>
        </details>
      ))}
    </section>
  );
}
