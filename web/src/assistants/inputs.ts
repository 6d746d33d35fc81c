// What the schema of a graph's input asks for, beside its messages.
import type { Assistant, Fields } from "../api";
import { MESSAGES } from "../messages-of";
import { initial, isFields, isRequired, propertiesOf, shapeOf, type Schema } from "../schema-form/schema";

function isObject(schema: Schema | null | undefined): schema is Schema {
  return isFields(schema) && shapeOf(schema, schema).kind === "object";
}

/** Return a schema that asks for something. */
export function asked(schema: Schema | null | undefined): Schema | null {
  return isObject(schema) ? schema : null;
}

/**
 * Return the field of an input that takes messages, or null: a form has no place for them. A graph whose schema
 * says nothing takes `messages`.
 */
export function messagesIn(schema: Schema | null | undefined): string | null {
  const kind = isFields(schema) ? (schema.type ?? schema.$ref) : undefined;
  if (!isFields(schema) || kind === undefined || (kind === "object" && !isObject(schema))) return MESSAGES;
  if (!isObject(schema)) return null;
  const properties = propertiesOf(shapeOf(schema, schema).schema);
  const isList = ([, each]: [string, unknown]) => JSON.stringify((each as Fields).items ?? null).includes("HumanMessage");
  return (properties.find(([name]) => name === MESSAGES) ?? properties.find(isList))?.[0] ?? null;
}

/** Return whether a schema requires all that it has: that of a typed dictionary does, and a graph takes any part of it. */
export function namesAll(schema: Schema): boolean {
  return propertiesOf(schema).every(([name]) => isRequired(schema, name));
}

/** Return whether a form asks for what has no default. */
export function hasRequired(schema: Schema): boolean {
  return propertiesOf(schema).some(([name, each]) => isRequired(schema, name) && (each as Fields).default === undefined);
}

/** Return the schema of an input without one of its fields, or null if nothing else is asked for. */
export function without(schema: Schema | null | undefined, name: string | null): Schema | null {
  // A graph of the functional API takes a value of any kind.
  if (!isFields(schema)) return null;
  const { type } = schema;
  // The title of such a value is the name of a class of langgraph.
  if (!isObject(schema)) return type === undefined || type === "object" ? null : { ...(schema as Schema), title: undefined };
  const { schema: own } = shapeOf(schema, schema);
  const properties = Object.fromEntries(Object.entries(own.properties as Fields).filter(([key]) => key !== name));
  if (Object.keys(properties).length === 0) return null;
  return { ...own, $defs: schema.$defs, properties, required: ((own.required ?? []) as string[]).filter((each) => each !== name) };
}

/** Return a context with what its schema and an assistant fill in. */
export function contextOf(assistant: Assistant, schema: Schema | null): Fields {
  if (schema === null) return {};
  return { ...(initial(schema, schema) as Fields | undefined), ...assistant.context };
}
