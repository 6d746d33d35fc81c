// A field of a form, by the schema of its value.
import { useId, useState, type ReactNode } from "react";
import { Icon } from "../icon";
import {
  initial, isFields, isRequired, propertiesOf, shapeOf, step, Unparsed, type Problem, type Problems, type Schema,
} from "./schema";
import { sentenceOf, w } from "./words";

export interface FieldProps {
  schema: unknown;
  root: Schema;
  /** JSON pointer of the value. */
  path: string;
  label: string;
  value: unknown;
  required: boolean;
  problems: Problems;
  onChange: (value: unknown) => void;
  /** Whether the field may be empty although it is required. */
  isPartial?: boolean;
}

/** Names and notes of an input, for its label and for screen readers. */
interface Marks {
  id: string;
  "aria-invalid": boolean | undefined;
  "aria-describedby": string | undefined;
  "aria-required": boolean | undefined;
}

export function Field(props: FieldProps) {
  const { root, path, value, required, problems, onChange, isPartial = false } = props;
  const { kind, schema, isNullable } = shapeOf(props.schema, root);
  const id = useId();
  const problem = problems.get(path);
  const label = nameOf(schema, props.label);
  const note = typeof schema.description === "string" ? schema.description : undefined;
  const notes = [...(note === undefined ? [] : [`${id}n`]), ...(problem === undefined ? [] : [`${id}p`])].join(" ");
  const marks: Marks = {
    id,
    "aria-invalid": (problem !== undefined && problem.isWarning !== true) || undefined,
    "aria-describedby": notes === "" ? undefined : notes,
    "aria-required": (required && !isPartial) || undefined,
  };
  const empty = isNullable ? null : undefined;
  const parts = { marks, schema, value, onChange, empty };
  if (kind === "fixed") return null;
  const isOptional = !required || isNullable;
  const heading = (
    <>
      {label}
      {isOptional && schema.default === undefined && <span className="optional" aria-hidden="true"> {w("optional")}</span>}
    </>
  );
  const around = (input: ReactNode) => (
    <div className="field">
      <label htmlFor={id}>{heading}</label>
      {note !== undefined && <p className="meta" id={`${id}n`}>{note}</p>}
      {input}
      {problem !== undefined && <Wrong id={`${id}p`} problem={problem} schema={schema} />}
    </div>
  );
  switch (kind) {
    case "text":
      return around(<TextInput {...parts} keepsEmpty={required} />);
    case "number":
    case "integer":
      return around(<NumberInput {...parts} kind={kind} />);
    case "choice":
      return around(<Choice {...parts} isOptional={isOptional} />);
    case "json":
      return around(<JsonInput marks={marks} value={value} onChange={onChange} empty={empty} />);
    case "boolean":
      if (isOptional && schema.default === undefined) {
        return around(<Choice {...parts} schema={{ enum: [true, false], labels: [w("yes"), w("no")] }} isOptional />);
      }
      return (
        <div className="field">
          <label className="row">
            <input type="checkbox" {...marks} checked={value === true} onChange={(event) => onChange(event.target.checked)} />
            {label}
          </label>
          {note !== undefined && <p className="meta" id={`${id}n`}>{note}</p>}
          {problem !== undefined && <Wrong id={`${id}p`} problem={problem} schema={schema} />}
        </div>
      );
    default:
      return (
        <fieldset className="field group" aria-describedby={marks["aria-describedby"]}>
          <legend>{heading}</legend>
          {note !== undefined && <p className="meta" id={`${id}n`}>{note}</p>}
          {kind === "list" ? (
            <List {...props} label={label} schema={schema} />
          ) : isFields(value) ? (
            <>
              <Properties schema={schema} root={root} path={path} value={value} problems={problems} onChange={onChange} />
              {isOptional && <Remove label={label} onClick={() => onChange(empty)} />}
            </>
          ) : (
            <button type="button" className="small" onClick={() => onChange(initial(schema, root) ?? {})}>
              <Icon name="plus" size={14} />{w("add")}<span className="hidden"> {label}</span>
            </button>
          )}
          {problem !== undefined && <Wrong id={`${id}p`} problem={problem} schema={schema} />}
        </fieldset>
      );
  }
}

/** Return a name for people: the title of the schema, or the key with spaces. */
function nameOf(schema: Schema, key: string): string {
  const words = key.replaceAll(/[_-]+/g, " ").trim();
  const own = words.charAt(0).toLocaleUpperCase() + words.slice(1);
  // The title of a class says what it is, and the key what it is for.
  return typeof schema.title === "string" && schema.type !== "object" ? schema.title : own;
}

function Wrong({ id, problem, schema }: { id: string; problem: Problem; schema: Schema }) {
  return <p className={problem.isWarning === true ? "warned" : "wrong"} id={id}>{sentenceOf(problem, schema)}</p>;
}

interface PropertiesProps {
  schema: Schema;
  root: Schema;
  path: string;
  value: Record<string, unknown>;
  problems: Problems;
  onChange: (value: unknown) => void;
  /** Whether fields may be missing although the schema names them. */
  isPartial?: boolean;
}

/** The fields of an object. */
export function Properties({ schema, root, path, value, problems, onChange, isPartial = false }: PropertiesProps) {
  return (
    <>
      {propertiesOf(schema).map(([name, each]) => (
        <Field
          key={name}
          schema={each}
          root={root}
          path={step(path, name)}
          label={name}
          value={value[name]}
          required={isRequired(schema, name)}
          isPartial={isPartial}
          problems={problems}
          onChange={(changed) => onChange({ ...value, [name]: changed })}
        />
      ))}
    </>
  );
}

function List({ schema, root, path, label, value, problems, onChange }: FieldProps) {
  const of = schema as Schema;
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  return (
    <>
      {items.map((each, i) => (
        <div className="row top item" key={i}>
          <div className="grow">
            <Field
              schema={of.items}
              root={root}
              path={step(path, i)}
              label={`${w("item")} ${i + 1}`}
              value={each}
              required
              problems={problems}
              onChange={(changed) => onChange(items.map((old, at) => (at === i ? changed : old)))}
            />
          </div>
          <Remove label={`${label} ${i + 1}`} onClick={() => onChange(items.filter((_, at) => at !== i))} />
        </div>
      ))}
      <button type="button" className="small" onClick={() => onChange([...items, initial(of.items, root) ?? blank(of.items, root)])}>
        <Icon name="plus" size={14} />{w("add")}<span className="hidden"> {label}</span>
      </button>
    </>
  );
}

function blank(schema: unknown, root: Schema): unknown {
  return shapeOf(schema, root).kind === "text" ? "" : undefined;
}

function Remove({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" className="icon quiet small" aria-label={`${w("remove")}: ${label}`} onClick={onClick}>
      <Icon name="close" size={14} />
    </button>
  );
}

interface InputProps {
  marks: Marks;
  schema: Schema;
  value: unknown;
  /** The value of an empty input. */
  empty: null | undefined;
  onChange: (value: unknown) => void;
}

const ROWS = 12;
const LONG = 60;

function TextInput({ marks, schema, value, empty, keepsEmpty, onChange }: InputProps & { keepsEmpty: boolean }) {
  const text = typeof value === "string" ? value : "";
  // An empty text is a value only where the schema allows it in words.
  const change = (typed: string) => onChange(typed !== "" || (keepsEmpty && schema.minLength === 0) ? typed : empty);
  const lines = text.split("\n").length;
  const type = { email: "email", uri: "url", date: "date", password: "password" }[String(schema.format)];
  if (type !== undefined) {
    return <input {...marks} type={type} value={text} onChange={(event) => change(event.target.value)} />;
  }
  return (
    <textarea
      {...marks}
      dir="auto"
      rows={Math.min(Math.max(lines, text.length > LONG ? 3 : 1), ROWS)}
      value={text}
      onChange={(event) => change(event.target.value)}
    />
  );
}

function NumberInput({ marks, value, empty, kind, onChange }: InputProps & { kind: "number" | "integer" }) {
  const [typed, setTyped] = useState(() => textOf(value));
  // "1." and "1" are the same number: what is typed stays, until the value is another.
  const shown = Object.is(numberOf(typed, kind), value) || value instanceof Unparsed ? typed : textOf(value);
  return (
    <input
      {...marks}
      inputMode={kind === "integer" ? "numeric" : "decimal"}
      autoComplete="off"
      value={shown}
      onChange={(event) => {
        const text = event.target.value;
        setTyped(text);
        onChange(text.trim() === "" ? empty : numberOf(text, kind));
      }}
    />
  );
}

function textOf(value: unknown): string {
  return value instanceof Unparsed ? value.text : typeof value === "number" ? String(value) : "";
}

/** Return the number that a text says, or what was typed. */
export function numberOf(text: string, kind: "number" | "integer"): unknown {
  // A comma is the decimal point of most of the world.
  const number = Number(text.trim().replace(/^([-+]?\d*),(\d+)$/, "$1.$2"));
  const isNumber = text.trim() !== "" && Number.isFinite(number) && (kind === "number" || Number.isInteger(number));
  return isNumber ? number : new Unparsed(text, kind);
}

function Choice({ marks, schema, value, empty, isOptional, onChange }: InputProps & { isOptional: boolean }) {
  const values = (schema.enum as unknown[]).filter((each) => each !== null);
  const labels = (schema.labels ?? []) as unknown[];
  const at = values.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
  return (
    <select
      {...marks}
      value={at}
      onChange={(event) => {
        const chosen = Number(event.target.value);
        onChange(chosen < 0 ? empty : values[chosen]);
      }}
    >
      {(isOptional || at < 0) && <option value={-1}>{w("none")}</option>}
      {values.map((each, i) => (
        <option key={i} value={i}>{String(labels[i] ?? (typeof each === "string" ? each : JSON.stringify(each)))}</option>
      ))}
    </select>
  );
}

interface JsonProps {
  marks?: Partial<Marks> & { "aria-label"?: string };
  value: unknown;
  empty?: null | undefined;
  onChange: (value: unknown) => void;
}

/** A value as JSON. What is no JSON is kept as `Unparsed`. */
export function JsonInput({ marks, value, empty, onChange }: JsonProps) {
  const [typed, setTyped] = useState(() => jsonOf(value));
  const [parsed, setParsed] = useState<unknown>(value);
  const shown = parsed === value ? typed : jsonOf(value);
  return (
    <textarea
      {...marks}
      className="json"
      dir="ltr"
      spellCheck={false}
      rows={Math.min(Math.max(shown.split("\n").length, 2), ROWS)}
      value={shown}
      onChange={(event) => {
        const text = event.target.value;
        const next = text.trim() === "" ? empty : parse(text);
        setTyped(text);
        setParsed(next);
        onChange(next);
      }}
    />
  );
}

function jsonOf(value: unknown): string {
  if (value instanceof Unparsed) return value.text;
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return new Unparsed(text, "json", lineOf(error, text));
  }
}

/** Return the line of a mistake, as far as the browser says where it is. */
function lineOf(error: unknown, text: string): number | undefined {
  const said = error instanceof Error ? error.message : "";
  const line = /line (\d+)/.exec(said)?.[1];
  if (line !== undefined) return Number(line);
  const place = /position (\d+)/.exec(said)?.[1];
  return place === undefined ? undefined : text.slice(0, Number(place)).split("\n").length;
}
