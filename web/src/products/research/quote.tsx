// A quote of the report, in the page that was read.
import { useEffect, useState } from "react";
import { Drawer } from "../../drawer";
import { Excerpt } from "../excerpt";
import * as client from "./client";
import { Address } from "./address";
import { w } from "./words";

interface Props { id: string; entry: client.Entry; statement: string; report: client.Report; onClose: () => void }

export function Quote({ id, entry, statement, report, onClose }: Props) {
  const page = usePage(id, entry);
  const source = report.sources.find((each) => each.url === entry.url);
  return (
    <Drawer title={`${w("quote")} ${entry.id}`} onClose={onClose}>
      <dl>
        <div><dt>{w("statement")}</dt><dd>{statement}</dd></div>
        <div><dt>{w("title")}</dt><dd>{source?.title ?? entry.url}</dd></div>
        <div><dt>{w("site")}</dt><dd><Address url={entry.url} /></dd></div>
        {source?.published != null && <div><dt>{w("published")}</dt><dd>{source.published}</dd></div>}
      </dl>
      {page === undefined && <p className="meta" role="status">{w("loadingPage")}</p>}
      {page === null && <p className="meta">{w("noPage")}</p>}
      {page ? (
        <Excerpt text={page.text} start={entry.start} end={entry.end} />
      ) : (
        <blockquote className="excerpt"><mark>{entry.quote}</mark></blockquote>
      )}
    </Drawer>
  );
}

/** Return the page with a quote; undefined while it loads, null if there is none. */
function usePage(id: string, entry: client.Entry): client.PageText | null | undefined {
  const [page, setPage] = useState<client.PageText | null | undefined>(undefined);
  useEffect(() => {
    let isGone = false;
    const found = (pages: client.PageText[]) => pages.find((each) => each.sha256 === entry.sha256) ?? null;
    client.pages(id).then(
      (pages) => {
        if (!isGone) setPage(found(pages));
      },
      () => {
        if (!isGone) setPage(null);
      },
    );
    return () => {
      isGone = true;
    };
  }, [entry, id]);
  return page;
}
