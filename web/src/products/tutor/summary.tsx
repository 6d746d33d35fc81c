// The summary of the mistakes in a conversation.
import { useCallback } from "react";
import * as requests from "./requests";
import { Trouble } from "./trouble";
import { useLoaded } from "./use_loaded";
import { typeName, w } from "./words";

export function SummaryOf({ threadId, version }: { threadId: string; version: number }) {
  const read = useCallback(() => requests.summary(threadId), [threadId]);
  const { value, problem, reload } = useLoaded(read, version);
  return (
    <section className="card stack" aria-label={w("summary")}>
      <Trouble problem={problem} onAgain={() => void reload()} />
      {value === null && problem === null && <p role="status">{w("loading")} …</p>}
      {value !== null && value.issues === 0 && <p>{w("nothingYet")}</p>}
      {value !== null && value.issues > 0 && <Types of={value} />}
    </section>
  );
}

function Types({ of }: { of: requests.Summary }) {
  return (
    <>
      <h2>{w("inThis")}: {of.issues} {w(of.issues === 1 ? "mistake" : "mistakes")}</h2>
      <ul className="plain stack">
        {of.by_type.map((each) => (
          <li key={each.type}>
            <h3>{typeName(each.type)} <span className="meta">{each.count}</span></h3>
            <ul className="plain">
              {each.examples.map((one, i) => (
                <li key={i}><del>{one.original}</del> <ins>{one.replacement}</ins> <span className="meta">{one.message}</span></li>
              ))}
            </ul>
            <p className="hint">{each.advice}</p>
          </li>
        ))}
      </ul>
    </>
  );
}
