// JSON Schema, as far as a form shows it, and the values that it describes.
import type { Fields } from "../api";

export type Schema = Fields;

export type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "object" | "list" | "fixed" | "json";

/** How a value is edited. */
export interface Shape {
  kind: Kind;
  /** The schema without references, and without `null`. */
  schema: Schema;
  isNullable: boolean;
}

/** What a person has typed that is no value of its kind: it is kept, and is an error. */
export class Unparsed {
  /** @param line where the mistake is, if that is known. */
  constructor(readonly text: string, readonly kind: "number" | "integer" | "json", readonly line?: number) {}

  toJSON(): string {
    return this.text;
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Unparsed);
}

// References may go in a circle.
const HOPS = 20;

/** Follow the references of a schema, and merge what stands beside them. */
function resolved(schema: unknown, root: Schema): Schema {
  let found: Schema = isFields(schema) ? schema : {};
  for (let hop = 0; hop < HOPS; hop++) {
    const { $ref, allOf, ...own } = found;
    if (typeof $ref === "string" && $ref.startsWith("#")) found = { ...target($ref, root), ...own };
    else if (Array.isArray(allOf) && allOf.length === 1) found = { ...(allOf[0] as Schema), ...own };
    else return found;
  }
  return {};
}

export function target(ref: string, root: Schema): Schema {
  let at: unknown = root;
  for (const key of ref.slice(1).split("/").slice(1)) {
    const name = decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~");
    at = isFields(at) && Object.hasOwn(at, name) ? at[name] : undefined;
    // A place in what a reference names.
    if (name === "$ref" && typeof at === "string" && at.startsWith("#")) at = target(at, root);
  }
  return isFields(at) ? at : {};
}

/** Return how a value of a schema is edited. */
export function shapeOf(given: unknown, root: Schema): Shape {
  let schema = resolved(given, root);
  let isNullable = false;
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union)) {
    const members = union.map((each) => resolved(each, root));
    const others = members.filter((each) => each.type !== "null");
    isNullable = others.length < members.length;
    const own = Object.fromEntries(Object.entries(schema).filter(([key]) => key !== "anyOf" && key !== "oneOf"));
    if (others.length === 1) schema = { ...others[0], ...own };
    else if (others.length > 0 && others.every((each) => each.const !== undefined)) {
      schema = { ...own, enum: others.map((each) => each.const), labels: others.map((each) => each.title) };
    } else return { kind: "json", schema, isNullable };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((each) => each !== "null");
    isNullable ||= types.length < schema.type.length;
    schema = { ...schema, type: types.length === 1 ? types[0] : undefined };
  }
  return { kind: kindOf(schema, root), schema, isNullable };
}

function kindOf(schema: Schema, root: Schema): Kind {
  if (schema.const !== undefined) return "fixed";
  if (Array.isArray(schema.enum)) return schema.enum.length === 1 ? "fixed" : "choice";
  switch (schema.type) {
    case "string":
      return "text";
    case "number":
    case "integer":
    case "boolean":
      return schema.type;
    case "object":
      return isFields(schema.properties) && Object.keys(schema.properties).length > 0 ? "object" : "json";
    case "array":
      return isFields(schema.items) && shapeOf(schema.items, root).kind !== "json" ? "list" : "json";
    default:
      return "json";
  }
}

export function propertiesOf(schema: Schema): [string, unknown][] {
  return Object.entries(isFields(schema.properties) ? schema.properties : {});
}

export function isRequired(schema: Schema, name: string): boolean {
  return Array.isArray(schema.required) && schema.required.includes(name);
}

export function onlyValue(schema: Schema): unknown {
  return schema.const ?? (schema.enum as unknown[] | undefined)?.[0];
}

const DEPTH = 6;

/** Return the value with which a form begins: the defaults, and what a required part needs. */
export function initial(given: unknown, root: Schema, required = true, depth = 0): unknown {
  const { kind, schema, isNullable } = shapeOf(given, root);
  if (schema.default !== undefined) return schema.default;
  if (!required || depth > DEPTH) return undefined;
  if (kind === "fixed") return onlyValue(schema);
  if (isNullable) return null;
  if (kind === "boolean") return false;
  if (kind === "list") return [];
  if (kind !== "object") return undefined;
  const made: Fields = {};
  for (const [name, each] of propertiesOf(schema)) {
    const value = initial(each, root, isRequired(schema, name), depth + 1);
    if (value !== undefined) made[name] = value;
  }
  return made;
}

/** Return a schema of which a value is an example, so that its parts keep their types. */
export function schemaOf(value: unknown): Schema {
  if (typeof value === "string") return { type: "string", minLength: 0 };
  if (typeof value === "number") return { type: Number.isInteger(value) ? "integer" : "number" };
  if (typeof value === "boolean") return { type: "boolean" };
  if (Array.isArray(value)) {
    const items = value.map((each) => schemaOf(each));
    // Whole numbers may stand among others.
    const one = items.find((each) => each.type === "number") ?? items[0];
    const isOne = items.every((each) => JSON.stringify(each) === JSON.stringify(one) || (one?.type === "number" && each.type === "integer"));
    return one !== undefined && isOne ? { type: "array", items: one } : { type: "array" };
  }
  if (!isFields(value)) return {};
  const properties = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, schemaOf(each)]));
  return { type: "object", properties, required: Object.keys(value) };
}

/** Return whether a value is a JSON Schema that says something of its instances. */
export function isSchema(value: unknown): value is Schema {
  if (!isFields(value)) return false;
  if (value.type === "object") return isFields(value.properties);
  if (["anyOf", "oneOf", "allOf", "enum"].some((key) => Array.isArray(value[key]))) return true;
  return typeof value.$ref === "string" || ["string", "number", "integer", "boolean", "array"].some((each) => each === value.type);
}

/** A problem of a value: the word that names it, and the limit that was passed. */
export interface Problem {
  word: string;
  limit?: unknown;
  /** Whether the value may be sent nevertheless. */
  isWarning?: boolean;
}

/** Problems by JSON pointer, such as `/items/0/name`. */
export type Problems = Map<string, Problem>;

export const step = (path: string, name: string | number): string =>
  `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Return a value without the fields that are not set. */
export function clean(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => clean(each) ?? null);
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => (each === undefined ? [] : [[name, clean(each)]])),
  );
}
