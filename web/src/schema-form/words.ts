import { wordsOf } from "../i18n";
import type { Problem, Schema } from "./schema";

export const w = wordsOf(
  {
    add: "Add",
    remove: "Remove",
    item: "Item",
    none: "Not set",
    yes: "Yes",
    no: "No",
    asForm: "Form",
    asJson: "JSON",
    view: "View",
    optional: "optional",
    wrong: "Check the marked fields.",
    required: "Fill this in.",
    number: "Write a number.",
    integer: "Write a whole number.",
    json: "This is no valid JSON.",
    line: "See line",
    type: "This has the wrong type.",
    minimum: "The least is",
    exclusiveMinimum: "It must be more than",
    maximum: "The most is",
    exclusiveMaximum: "It must be less than",
    minLength: "The least number of characters is",
    maxLength: "The most characters are",
    minItems: "The least number of items is",
    maxItems: "The most items are",
    pattern: "It does not have the right form.",
    example: "An example:",
    email: "Write an e-mail address, such as ana@example.com.",
    uri: "Write an address, such as https://example.com.",
    date: "Write a date, such as 2026-05-31.",
    time: "Write a time, such as 14:30:00Z.",
    "date-time": "Write a date and a time, such as 2026-05-31T14:30:00Z.",
    uuid: "Write a UUID, such as 123e4567-e89b-12d3-a456-426614174000.",
    emptied: "This was filled in before, and is empty now.",
    enum: "Choose one of the values.",
    const: "The only value is",
    additionalProperties: "There is a field that is not known.",
    other: "This value does not fit.",
  },
  {
    add: "Juntar",
    remove: "Remover",
    item: "Elemento",
    none: "Sem valor",
    yes: "Sim",
    no: "Não",
    asForm: "Formulário",
    asJson: "JSON",
    view: "Vista",
    optional: "opcional",
    wrong: "Veja os campos assinalados.",
    required: "Preencha este campo.",
    number: "Escreva um número.",
    integer: "Escreva um número inteiro.",
    json: "Isto não é JSON válido.",
    line: "Veja a linha",
    type: "O tipo está errado.",
    minimum: "O mínimo é",
    exclusiveMinimum: "Tem de ser mais do que",
    maximum: "O máximo é",
    exclusiveMaximum: "Tem de ser menos do que",
    minLength: "O número mínimo de caracteres é",
    maxLength: "O número máximo de caracteres é",
    minItems: "O número mínimo de elementos é",
    maxItems: "O número máximo de elementos é",
    pattern: "Não tem a forma certa.",
    example: "Um exemplo:",
    email: "Escreva um endereço de e-mail, como ana@example.com.",
    uri: "Escreva um endereço, como https://example.com.",
    date: "Escreva uma data, como 2026-05-31.",
    time: "Escreva uma hora, como 14:30:00Z.",
    "date-time": "Escreva uma data e uma hora, como 2026-05-31T14:30:00Z.",
    uuid: "Escreva um UUID, como 123e4567-e89b-12d3-a456-426614174000.",
    emptied: "Este campo estava preenchido e agora está vazio.",
    enum: "Escolha um dos valores.",
    const: "O único valor é",
    additionalProperties: "Há um campo desconhecido.",
    other: "Este valor não serve.",
  },
);

const PLAIN = ["number", "integer", "json", "required", "type", "enum", "additionalProperties", "emptied"] as const;
const LIMITED = [
  "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "const",
] as const;
const FORMATS = ["email", "uri", "date", "time", "date-time", "uuid"] as const;

/** Say what is wrong with a value, so that a person knows what to write. */
export function sentenceOf({ word, limit }: Problem, schema: Schema): string {
  const { type } = schema;
  if ((word === "required" || word === "type") && (type === "number" || type === "integer")) return w(type);
  const isFirst = (word === "minLength" || word === "minItems") && limit === 1;
  if (isFirst) return w("required");
  if (word === "json" && limit !== undefined) return `${w("json")} ${w("line")} ${String(limit)}.`;
  const plain = PLAIN.find((each) => each === word);
  if (plain !== undefined) return w(plain);
  const limited = LIMITED.find((each) => each === word);
  if (limited !== undefined) return `${w(limited)} ${String(limit)}.`;
  if (word !== "pattern" && word !== "format") return w("other");
  const format = FORMATS.find((each) => word === "format" && each === limit);
  if (format !== undefined) return w(format);
  const given = Array.isArray(schema.examples) ? (schema.examples as unknown[]).find((each) => typeof each === "string") : undefined;
  const example = given ?? (word === "pattern" ? exampleOf(String(limit)) : undefined);
  return example === undefined ? w("pattern") : `${w("pattern")} ${w("example")} ${example}`;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const SETS = new Map([
  ["\\d", "1234567890"], ["[0-9]", "1234567890"], ["[A-Z]", LETTERS], ["[a-z]", LETTERS.toLowerCase()],
  ["[A-Za-z]", LETTERS], ["[a-zA-Z]", LETTERS],
]);
const LONGEST = 40;

/** Return a text of a pattern that only counts digits and letters, such as `^[A-Z]{2}-[0-9]{4}$`. */
export function exampleOf(pattern: string): string | undefined {
  let example = "";
  const left = pattern.replace(/^\^/, "").replace(/\$$/, "").replaceAll(
    /(\\d|\[(?:0-9|A-Z|a-z|A-Za-z|a-zA-Z)\]|\\[^\w]|[\w \-/:@#,])(?:\{(\d+)(?:,\d*)?\}|([+*?]))?/g,
    (_, set: string, count?: string, few?: string) => {
      const times = Math.min(Number(count ?? (few === undefined || few === "+" ? 1 : 0)), LONGEST);
      example += (SETS.get(set) ?? set.replace(/^\\/, "")).repeat(times).slice(0, times);
      return "";
    },
  );
  return left === "" && example !== "" ? example : undefined;
}
