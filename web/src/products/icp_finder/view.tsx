// The profile and the candidates of a thread.
import { useState } from "react";
import * as api from "../../api";
import { t } from "../../i18n";
import { explain } from "../../problems";
import type { ViewProps } from "..";

interface Candidate { key: string; name: string; website: string | null; industry: string; region: string; source: string; score: number; parts: Record<string, unknown> }

export default function View({ values }: ViewProps) {
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
