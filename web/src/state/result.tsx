// What a graph without messages has made.
import { useEffect, useState } from "react";
import type { Fields } from "../api";
import { schemas } from "../assistants/client";
import { Text } from "../markdown";
import { propertiesOf } from "../schema-form/schema";
import { entriesOf } from "./entries";
import "./styles.css";
import { Tree } from "./tree";
import { w } from "./words";

interface Props {
  values: Fields;
  /** Whose schemas say what is output; the rest of the state is folded. */
  assistant: string;
  isBusy: boolean;
}

/** Return the fields that the graph gives out and does not take in; all if it does not say. */
function useOutputs(assistant: string): string[] {
  const [outputs, setOutputs] = useState<string[]>([]);
  useEffect(() => {
    let isHere = true;
    const read = async () => {
      const { input_schema: input, output_schema: output } = await schemas(assistant);
      const taken = new Set(propertiesOf(input ?? {}).map(([name]) => name));
      const given = propertiesOf(output ?? {}).map(([name]) => name);
      const made = given.filter((name) => !taken.has(name));
      if (isHere) setOutputs(made.length > 0 ? made : given);
    };
    // Without the schemas all fields are shown.
    void read().catch(() => undefined);
    return () => {
      isHere = false;
    };
  }, [assistant]);
  return outputs;
}

/** What a graph without messages has made: its texts as Markdown, and all other values to read. */
export default function Result({ values, assistant, isBusy }: Props) {
  const outputs = useOutputs(assistant);
  const entries = entriesOf(values);
  const isOutput = ([name]: [string, unknown]) => outputs.length === 0 || outputs.includes(name);
  const shown = entries.filter((each) => isOutput(each) && !isNothing(each[1]));
  const rest = entries.filter((each) => !isOutput(each));
  if (entries.length === 0) return null;
  return (
    <section className="result stack" aria-label={w("output")} aria-busy={isBusy}>
      {shown.map(([name, each]) => (
        <section className="card stack" key={name} aria-label={name}>
          <h2 className="label">{name}</h2>
          {typeof each === "string" ? <Text text={each} growing={false} /> : <Tree value={each} />}
        </section>
      ))}
      {rest.length > 0 && (
        <details>
          <summary className="meta">{w("state")}</summary>
          <div className="card"><Tree value={Object.fromEntries(rest)} /></div>
        </details>
      )}
    </section>
  );
}

function isNothing(value: unknown): boolean {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0);
}
