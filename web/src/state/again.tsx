// The next run of a graph without messages, in the thread of its last one.
import { useEffect, useRef, useState } from "react";
import type { Input } from "../api";
import { schemas } from "../assistants/client";
import { namesAll, without } from "../assistants/inputs";
import { w as word } from "../assistants/words";
import { focusProblem, SchemaForm } from "../schema-form/form";
import { problemsOf } from "../schema-form/problems";
import { clean, initial, isFields, type Schema } from "../schema-form/schema";
import { w } from "./words";

interface Props {
  assistant: string;
  /** With what the last run was started. */
  last: unknown;
  onRun: (input: Input) => void;
}

export default function Again({ assistant, last, onRun }: Props) {
  const [schema, setSchema] = useState<Schema | null>(null);
  useEffect(() => {
    let isHere = true;
    // Without its schema there is no form.
    schemas(assistant).then((found) => isHere && setSchema(without(found.input_schema, null)), () => undefined);
    return () => {
      isHere = false;
    };
  }, [assistant]);
  return schema !== null && <Form schema={schema} last={last} onRun={onRun} />;
}

function Form({ schema, last, onRun }: { schema: Schema; last: unknown; onRun: (input: Input) => void }) {
  const [input, setInput] = useState<unknown>(() => filled(schema, last));
  const [isTried, setTried] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const isPartial = namesAll(schema);
  const problems = problemsOf(schema, input, isPartial);
  return (
    <details className="again">
      <summary>{w("again")}</summary>
      <form
        ref={form}
        className="card stack inputs"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (problems.size > 0) focusProblem(form.current);
          else onRun(clean(input) as Input);
        }}
      >
        <SchemaForm
          schema={schema}
          label={word("inputs")}
          value={input}
          problems={isTried ? problems : new Map()}
          onChange={setInput}
          isPartial={isPartial}
        />
        <button className="primary send">{word("run")}</button>
      </form>
    </details>
  );
}

/** Return what the last run was started with, and defaults for what it left out. */
function filled(schema: Schema, last: unknown): unknown {
  const first = initial(schema, schema);
  return isFields(first) && isFields(last) ? { ...first, ...last } : (last ?? first);
}
