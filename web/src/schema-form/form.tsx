// A form of a JSON Schema, also as JSON. It is controlled: who shows it has the value, and sends it.
import { useState } from "react";
import { Field, JsonInput, Properties } from "./field";
import { isFields, shapeOf, Unparsed, type Problems, type Schema } from "./schema";
import "./styles.css";
import { sentenceOf, w } from "./words";

interface Props {
  schema: Schema;
  label: string;
  value: unknown;
  /** Shown at their fields; none while nobody has tried to send. */
  problems: Problems;
  onChange: (value: unknown) => void;
  /** Whether fields at the top may be missing although the schema requires them. */
  isPartial?: boolean;
}

export function SchemaForm({ schema, label, value, problems, onChange, isPartial = false }: Props) {
  const shape = shapeOf(schema, schema);
  const [isJson, setJson] = useState(false);
  // Fields cannot show what is no JSON: the person mends it first.
  const [isHeld, setHeld] = useState(false);
  const broken = value instanceof Unparsed && (isHeld || problems.has("")) ? value : undefined;
  const mayChoose = shape.kind !== "json";
  const wrong = [...problems].flatMap(([path, each]) => (each.isWarning === true ? [] : [path]));
  const common = { root: schema, path: "", problems, onChange };
  return (
    <div className="schema-form stack" role="group" aria-label={label}>
      {mayChoose && (
        <div className="row switch" role="group" aria-label={w("view")}>
          <button type="button" className="quiet small" aria-pressed={!isJson} onClick={() => (value instanceof Unparsed ? setHeld(true) : setJson(false))}>{w("asForm")}</button>
          <button type="button" className="quiet small" aria-pressed={isJson} onClick={() => setJson(true)}>{w("asJson")}</button>
        </div>
      )}
      {isJson || !mayChoose ? (
        <JsonInput
          marks={{ "aria-label": `${label} (JSON)`, "aria-invalid": broken !== undefined || wrong.length > 0 || undefined }}
          value={value}
          onChange={onChange}
        />
      ) : shape.kind === "object" ? (
        <Properties {...common} schema={shape.schema} value={isFields(value) ? value : {}} isPartial={isPartial} />
      ) : (
        <Field {...common} schema={schema} label={label} value={value} required />
      )}
      {broken !== undefined && (
        <p className="wrong" role="alert">{sentenceOf({ word: broken.kind, limit: broken.line }, shape.schema)}</p>
      )}
      {broken === undefined && wrong.length > 0 && (
        <p className="wrong" role="alert">
          {w("wrong")} {(isJson || !mayChoose) && wrong.filter((path) => path !== "").join(", ")}
        </p>
      )}
    </div>
  );
}

/** Move the focus to the first field with a problem, and show it with its label. */
export function focusProblem(form: HTMLElement | null): void {
  // The sentences at the fields have moved them only after the first frame.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const field = form?.querySelector<HTMLElement>('[aria-invalid="true"], .undecided button');
    field?.focus({ preventScroll: true });
    field?.closest(".field, .action")?.scrollIntoView({ block: "nearest" });
  }));
}
