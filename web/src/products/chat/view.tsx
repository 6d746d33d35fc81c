// The passages that an answer cites.
import { t } from "../../i18n";
import type { ViewProps } from "..";

interface Citation { number: number; title: string; section: string; text: string }

export default function View({ values }: ViewProps) {
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
