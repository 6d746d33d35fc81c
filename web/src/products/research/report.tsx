// The report: statements whose marks open their quotes, diagrams and sources.
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { locale, t } from "../../i18n";
import { Address } from "./address";
import type { Claim, Entry, Report as Content, Written } from "./client";
import { Quote } from "./quote";
import { Sources } from "./sources";
import { budget, titled, w } from "./words";

const Diagram = lazy(() => import("../../content/diagram"));

interface Props { id: string; written: Written }

export function Report({ id, written }: Props) {
  const { report, markdown } = written;
  const [open, setOpen] = useState<{ entry: Entry; statement: string } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  // What is folded is needed on paper: a statement without its quote proves nothing.
  useEffect(() => {
    const unfold = () => box.current?.querySelectorAll("details").forEach((each) => (each.open = true));
    addEventListener("beforeprint", unfold);
    return () => removeEventListener("beforeprint", unfold);
  }, []);
  const diagrams = useMemo(() => diagramsOf(markdown), [markdown]);
  const show = (number: string, statement: string) => {
    const entry = report.ledger.find((each) => each.id === number);
    if (entry !== undefined) setOpen({ entry, statement });
  };
  return (
    <div className="stack report" ref={box}>
      <div className="actions controls">
        <button className="small" onClick={() => save(markdown, `${fileName(report.title)}.md`)}>{w("download")}</button>
        <button className="small" onClick={() => print()}>{w("print")}</button>
      </div>
      <Warnings report={report} />
      {report.sections.map((section) => (
        <section key={section.title} className="prose">
          <h2>{titled(section.title)}</h2>
          <ul>{section.claims.map((each, i) => <Statement key={i} claim={each} onShow={show} />)}</ul>
        </section>
      ))}
      <Disagreements report={report} onShow={show} />
      {diagrams.length > 0 && (
        <section className="stack" aria-label={w("diagrams")}>
          {diagrams.map((each, i) => (
            <Suspense key={i} fallback={<p className="meta" role="status">{t("loading")}</p>}>
              <Diagram source={each} name={`${w("diagram")} ${i + 1}`} />
            </Suspense>
          ))}
        </section>
      )}
      <Refused claims={report.unsupported} />
      <Quotes ledger={report.ledger} onShow={show} />
      <Sources sources={report.sources} />
      <p className="meta">{w("used")}: {Object.entries(report.usage).map(([name, n]) => `${budget(name)} ${Math.round(n).toLocaleString(locale())}`).join(", ")}</p>
      {open !== null && <Quote id={id} {...open} report={report} onClose={() => setOpen(null)} />}
    </div>
  );
}

type Show = (number: string, statement: string) => void;

function Statement({ claim, onShow }: { claim: Claim; onShow: Show }) {
  return (
    <li>
      {claim.text}
      {claim.entries.map((each) => <Mark key={each} number={each} onClick={() => onShow(each, claim.text)} />)}
      {claim.origins > 1 && <span className="meta"> {claim.origins} {w("origins")}</span>}
    </li>
  );
}

function Mark({ number, onClick }: { number: string; onClick: () => void }) {
  return <button className="cite" aria-label={`${w("quote")} ${number}`} onClick={onClick}>{number}</button>;
}

function Warnings({ report }: { report: Content }) {
  return (
    <>
      {report.found_nothing && <p className="notice">{w("nothing")}</p>}
      {report.status !== "completed" && <p className="notice">{w("partial")}</p>}
      {report.limits_hit.length > 0 && <p className="notice">{w("limits")} {report.limits_hit.map(budget).join(", ")}.</p>}
      {report.offline && <p className="notice">{w("offline")}</p>}
    </>
  );
}

function Disagreements({ report, onShow }: { report: Content; onShow: Show }) {
  if (report.disagreements.length === 0) return null;
  return (
    <section className="prose">
      <h2>{w("differ")}</h2>
      {report.disagreements.map((each, i) => (
        <ul key={i} className="variants">
          {each.variants.map(([value, date, entry], place) => (
            <li key={place}>
              <span className="meta">{date === "" ? w("undated") : date}{place === 0 && date !== "" && ` · ${w("newest")}`}</span>
              <span>{value}<Mark number={entry} onClick={() => onShow(entry, value)} /></span>
            </li>
          ))}
        </ul>
      ))}
    </section>
  );
}

function Refused({ claims }: { claims: Claim[] }) {
  if (claims.length === 0) return null;
  return (
    <details>
      <summary>{w("refused")} ({claims.length})</summary>
      <p className="meta">{w("refusedHint")}</p>
      <ul className="prose">{claims.map((each, i) => <li key={i}>{each.text} <span className="meta">{each.reason}</span></li>)}</ul>
    </details>
  );
}

function Quotes({ ledger, onShow }: { ledger: Entry[]; onShow: Show }) {
  if (ledger.length === 0) return null;
  return (
    <details className="quotes">
      <summary>{w("quotes")} ({ledger.length})</summary>
      <ol className="plain stack tight">
        {ledger.map((each) => (
          <li key={each.id}>
            <Mark number={each.id} onClick={() => onShow(each.id, each.quote)} />
            <span>“{each.quote}” <Address url={each.url} /></span>
          </li>
        ))}
      </ol>
    </details>
  );
}

/** Return the diagrams in a report. */
export function diagramsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^```mermaid\n([\s\S]*?)\n```$/gm)].map((found) => found[1] ?? "");
}

/** Return a title as the name of a file. */
export function fileName(title: string): string {
  const plain = title.normalize("NFKD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return plain.slice(0, 60).toLowerCase() || "report";
}

function save(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}
