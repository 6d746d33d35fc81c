// The state of a graph, beside its conversation.
import type { Fields } from "../api";
import { entriesOf } from "./entries";
import "./styles.css";
import { Tree } from "./tree";
import { w } from "./words";

/** The fields of the state other than its messages. They change while the run goes on. */
export function StatePanel({ values }: { values: Fields }) {
  const entries = entriesOf(values);
  return (
    <section className="panel state" aria-label={w("state")}>
      <h2>{w("state")}</h2>
      {entries.length === 0 ? <p className="hint">{w("noState")}</p> : <Tree value={Object.fromEntries(entries)} />}
    </section>
  );
}
