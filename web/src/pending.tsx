import type { Fields, Run } from "./api";
import { t } from "./i18n";
import { textOf } from "./message";

/** List the messages that wait on the server for the run in front of them. */
export function Pending({ runs, onCancel }: { runs: Run[]; onCancel: (run: Run) => void }) {
  if (runs.length === 0) return null;
  return (
    <section className="pending" aria-label={t("waitingRuns")}>
      <h2>{t("waitingRuns")}</h2>
      <ul className="plain">
        {runs.map((run) => (
          <li key={run.run_id} className="row">
            <span className="grow title">{wording(run)}</span>
            <button onClick={() => onCancel(run)}>{t("withdraw")}</button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function wording(run: Run): string {
  const messages = run.kwargs?.input?.messages;
  const last = Array.isArray(messages) ? (messages as Fields[]).at(-1) : undefined;
  return textOf(last?.content) || run.run_id.slice(-4);
}
