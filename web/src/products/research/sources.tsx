// Every page that was found.
import type { Source } from "./client";
import { Address } from "./address";
import { w } from "./words";

export function Sources({ sources }: { sources: Source[] }) {
  if (sources.length === 0) return null;
  return (
    <section className="prose">
      <h2>{w("sources")}</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label={w("sources")}>
        <table>
          <thead>
            <tr><th scope="col">{w("title")}</th><th scope="col">{w("published")}</th><th scope="col">{w("state")}</th></tr>
          </thead>
          <tbody>
            {sources.map((each) => (
              <tr key={each.url}>
                <td>{each.title}<span className="meta"><Address url={each.url} /></span></td>
                <td className="date">{each.published ?? "–"}</td>
                <td>{w(each.crawled ? "read" : "notRead")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
