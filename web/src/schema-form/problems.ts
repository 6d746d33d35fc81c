// What keeps a value from being sent: it does not fit its schema. The validator evaluates no code.
import { Validator } from "@cfworker/json-schema";
import { clean, isFields, step, target, Unparsed, type Problems, type Schema } from "./schema";

// They only say that a part is wrong.
const OUTER = new Set(["properties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$ref", "not", "if", "then", "else"]);

/**
 * Return what keeps a value from being sent.
 *
 * @param isPartial whether parts at the top may be missing. The schema of a graph's state names all of it.
 */
export function problemsOf(schema: Schema, value: unknown, isPartial = false): Problems {
  const found: Problems = new Map();
  unparsed(value, "", found);
  if (found.size > 0) return found;
  for (const each of errorsOf(isPartial ? { ...schema, required: [] } : schema, clean(value))) {
    let path = decodeURIComponent(each.instanceLocation.slice(1));
    let word = value === undefined ? "required" : each.keyword;
    if (each.keyword === "required") path = step(path, /"(.*)"/.exec(each.error)?.[1] ?? "");
    if (word === "false") word = "additionalProperties";
    const isOuter = OUTER.has(word);
    if (found.has(path) && (isOuter || found.get(path)?.word !== "other")) continue;
    if (isOuter && [...found.keys()].some((known) => known.startsWith(`${path}/`))) continue;
    const limit = isOuter ? undefined : target(each.keywordLocation.replace(/\/[^/]*$/, ""), schema)[word];
    found.set(path, { word: isOuter ? "other" : word, limit });
  }
  for (const [path, problem] of found) {
    const hasInner = [...found.keys()].some((known) => known.startsWith(`${path}/`));
    if (problem.word === "other" && hasInner) found.delete(path);
  }
  return found;
}

/** Return warnings at the texts that were filled in, and are empty now. */
export function emptied(before: unknown, now: unknown, path = "", found: Problems = new Map()): Problems {
  if (typeof before === "string" && before !== "" && (now === "" || now === undefined)) found.set(path, { word: "emptied", isWarning: true });
  if (isFields(before) && isFields(now)) {
    for (const [name, each] of Object.entries(before)) emptied(each, now[name], step(path, name), found);
  }
  return found;
}

function errorsOf(schema: Schema, value: unknown) {
  try {
    return new Validator(schema, "2020-12", false).validate(value ?? null).errors;
  } catch {
    // A schema that is wrong itself refuses nothing: the graph has the last word.
    return [];
  }
}

function unparsed(value: unknown, path: string, found: Problems): void {
  if (value instanceof Unparsed) found.set(path, { word: value.kind, limit: value.line });
  else if (Array.isArray(value)) value.forEach((each, i) => unparsed(each, step(path, i), found));
  else if (isFields(value)) for (const [name, each] of Object.entries(value)) unparsed(each, step(path, name), found);
}
