import type { Fields, Run } from "./api";
import { t } from "./i18n";
import { messagesOf } from "./messages-of";
import { textOf } from "./shown";

/** Return the messages with which a run was started. */
export function inputOf(run: Run): Fields[] {
  return messagesOf(run.kwargs?.input);
}

/** List the messages that wait on the server for the run in front of them. */
export function Pending({ runs, onCancel }: { runs: Run[]; onCancel: (run: Run) => void }) {
  if (runs.length === 0) return null;
  return (
    <section className="pending" aria-label={t("waitingRuns")}>
      <h2>{t("waitingRuns")}</h2>
      <ul className="plain">
        {runs.map((run) => (
          <li key={run.run_id} className="row">
            <span className="grow clip">{textOf(inputOf(run).at(-1)?.content) || run.run_id.slice(-4)}</span>
            <button className="quiet small" onClick={() => onCancel(run)}>{t("withdraw")}</button>
          </li>
        ))}
      </ul>
    </section>
  );
}
