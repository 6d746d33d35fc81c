// The summary of a learner's mistakes.
import { useState } from "react";
import * as api from "../../api";
import { t } from "../../i18n";
import { explain } from "../../problems";
import type { ViewProps } from "..";

export default function View({ values, threadId }: ViewProps) {
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
