// What an interrupt asks for, read from its value as people write them from the documentation.
import type { Fields, Interrupt } from "../api";
import { isFields, isSchema, shapeOf, type Schema } from "../schema-form/schema";

export type Decision = "approve" | "edit" | "reject" | "respond" | "ignore";

/** A call of a tool that waits for a decision. */
export interface Action {
  name: string;
  args: unknown;
  description: string;
  allowed: Decision[];
  /** What the arguments of an edit must be, if the graph says so. */
  schema: Schema | undefined;
}

/** A decision that a person has made. */
export interface Made {
  type: Decision;
  /** Arguments of an edit. */
  args?: unknown;
  /** Reason of a refusal, or the answer. */
  text?: string;
}

export interface Option {
  value: unknown;
  label: string;
}

export type Asked =
  | { kind: "actions"; actions: Action[]; reply: (made: Made[]) => unknown }
  | { kind: "form"; schema: Schema }
  /** The answers that are offered, and whether one of one's own is an answer too. */
  | { kind: "open"; options: Option[]; isFree: boolean };

/** Return whether a tool only asks the person, who may leave it unanswered if it says so. */
export const onlyAsks = ({ allowed }: Action): boolean =>
  allowed.includes("respond") && allowed.every((each) => each === "respond" || each === "ignore");

const DECISIONS: Decision[] = ["approve", "edit", "reject", "respond"];

/** Read what an interrupt asks for. */
export function askedOf({ value, response_schema: schema }: Pick<Interrupt, "value" | "response_schema">): Asked {
  const fields = isFields(value) ? value : {};
  const actions = batch(fields) ?? perCall(fields, schema) ?? inbox(value);
  if (actions !== null) return actions;
  const wanted = [schema, ...SCHEMAS.map((key) => fields[key])].find(isSchema);
  const options = optionsOf(value);
  if (wanted !== undefined && listOf(value) === undefined) {
    const { kind, isNullable } = shapeOf(wanted, wanted);
    if (kind === "boolean" && !isNullable) return { kind: "open", options: yesNo(true, false), isFree: false };
    return { kind: "form", schema: wanted };
  }
  if (options.length === 0 && isSchema(value)) return { kind: "form", schema: value };
  return { kind: "open", options, isFree: wanted === undefined && !isConfirm(fields) };
}

const SCHEMAS = ["response_schema", "json_schema", "schema", "args_schema", "input_schema", "form"];

// ---- Decisions ----

/** `HumanInTheLoopMiddleware` of LangChain: all calls of a model's turn at once. */
function batch(fields: Fields): Asked | null {
  const requests = fields.action_requests ?? fields.actionRequests;
  if (!Array.isArray(requests) || requests.length === 0 || !requests.every(isFields)) return null;
  const configs = fields.review_configs ?? fields.reviewConfigs;
  const byName = new Map(
    (Array.isArray(configs) ? configs.filter(isFields) : []).map((each) => [each.action_name ?? each.actionName, each]),
  );
  const actions = requests.map((each): Action => {
    const config = byName.get(each.name ?? each.action);
    const allowed = config?.allowed_decisions ?? config?.allowedDecisions;
    return {
      ...callOf(each),
      allowed: Array.isArray(allowed) ? DECISIONS.filter((known) => allowed.includes(known)) : DECISIONS,
      schema: isSchema(config?.args_schema) ? config.args_schema : undefined,
    };
  });
  return {
    kind: "actions",
    actions,
    reply: (made) => ({ decisions: made.map((each, i) => decisionOf(each, actions[i]?.name ?? "")) }),
  };
}

/** The same middleware with an interrupt for each call: it is answered by one decision. */
function perCall(fields: Fields, schema: unknown): Asked | null {
  if (fields.type !== "tool_approval" || typeof fields.name !== "string") return null;
  const root = isFields(schema) ? schema : {};
  const union = root.oneOf ?? root.anyOf;
  const branches = (Array.isArray(union) ? union : [root]).map((each) => shapeOf(each, root).schema);
  const typeOf = (branch: Schema) => part(branch, "type", root).const;
  const named = DECISIONS.filter((each) => branches.some((branch) => typeOf(branch) === each));
  const edit = branches.find((branch) => typeOf(branch) === "edit");
  const args = edit === undefined ? {} : part(part(edit, "edited_action", root), "args", root);
  const action = {
    ...callOf(fields),
    allowed: named.length > 0 ? named : DECISIONS,
    schema: isSchema(args) ? { ...args, $defs: root.$defs } : undefined,
  };
  return { kind: "actions", actions: [action], reply: ([made]) => (made ? decisionOf(made, action.name) : null) };
}

function part(schema: Schema, name: string, root: Schema): Schema {
  return shapeOf(isFields(schema.properties) ? schema.properties[name] : {}, root).schema;
}

function callOf(fields: Fields): Pick<Action, "name" | "args" | "description"> {
  const name = fields.name ?? fields.action;
  return {
    name: typeof name === "string" ? name : "",
    args: fields.args ?? fields.arguments ?? {},
    description: typeof fields.description === "string" ? fields.description : "",
  };
}

function decisionOf(made: Made, name: string): Fields {
  switch (made.type) {
    case "edit":
      return { type: "edit", edited_action: { name, args: made.args } };
    case "reject":
      return made.text ? { type: "reject", message: made.text } : { type: "reject" };
    case "respond":
      return { type: "respond", message: made.text ?? "" };
    default:
      return { type: "approve" };
  }
}

const INBOX: [string, Decision][] = [
  ["allow_accept", "approve"], ["allow_edit", "edit"], ["allow_respond", "respond"], ["allow_ignore", "ignore"],
];
const INBOX_TYPES: Record<Decision, string> = {
  approve: "accept", edit: "edit", respond: "response", ignore: "ignore", reject: "ignore",
};

/** `HumanInterrupt` of the agent inbox: one, or a list of them. The answer is a list. */
function inbox(value: unknown): Asked | null {
  const requests = Array.isArray(value) ? (value as unknown[]) : [value];
  if (requests.length === 0 || !requests.every((each) => isFields(each) && isFields(each.action_request))) return null;
  const actions = (requests as Fields[]).map((each): Action => {
    const config = isFields(each.config) ? each.config : {};
    return {
      ...callOf(each.action_request as Fields),
      description: typeof each.description === "string" ? each.description : "",
      allowed: INBOX.flatMap(([key, decision]) => (config[key] === true ? [decision] : [])),
      schema: undefined,
    };
  });
  const reply = (made: Made[]) =>
    made.map((each, i) => ({
      type: INBOX_TYPES[each.type],
      args:
        each.type === "edit"
          ? { action: actions[i]?.name, args: each.args }
          : each.type === "respond" ? (each.text ?? "") : null,
    }));
  return { kind: "actions", actions, reply };
}

// ---- Other questions ----

const WORDS = ["question", "message", "prompt", "instruction", "instructions", "query", "text", "title", "description"];

function wordsKey(fields: Fields): string | undefined {
  const isFilled = (key: string) => typeof fields[key] === "string" && fields[key].trim() !== "";
  // What to do, in words: not the name of a call.
  return WORDS.find(isFilled) ?? (isFilled("action") && /\s/.test(String(fields.action)) ? "action" : undefined);
}

/** Return the words of an interrupt's value, or nothing if it has none. */
export function questionOf(value: unknown): string {
  if (typeof value === "string") return value;
  const fields = isFields(value) ? value : {};
  const key = wordsKey(fields);
  return key === undefined ? "" : String(fields[key]);
}

/** Return what an interrupt's value says beside its words, options and schema. */
export function detailsOf(value: unknown): unknown {
  if (typeof value === "string" || value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return optionsOf(value).length > 0 ? undefined : value;
  if (!isFields(value)) return undefined;
  const used = new Set([wordsKey(value), ...CHOICES, ...SCHEMAS]);
  const rest = isSchema(value)
    ? []
    : Object.entries(value).filter(([name, each]) => !used.has(name) && !(name === "type" && typeof each === "string"));
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}

const CHOICES = ["options", "choices"];

/** Return the answers that a question offers, each as its JSON value. */
export function optionsOf(value: unknown): Option[] {
  const fields = isFields(value) ? value : {};
  const listed = listOf(value);
  if (listed !== undefined) return listed.map(optionOf);
  if (asksNothing(value)) return [{ value: true, label: "continue" }];
  const words = questionOf(value);
  if (typeof value === "boolean" || isConfirm(fields)) return yesNo(true, false);
  const said = TEXTS.find(([pattern]) => pattern.test(words));
  if (said !== undefined) return yesNo(said[1], said[2]);
  if (!isYesNo(words)) return [];
  // As the documentation of LangGraph lets a tool ask.
  if (typeof fields.action === "string" && wordsKey(fields) !== "action") return [{ value: { action: "approve" }, label: "approve" }, { value: { action: "reject" }, label: "reject" }];
  return yesNo(true, false);
}

/** Return whether a graph only stops, without a word. */
function asksNothing(value: unknown): boolean {
  return value === null || value === "" || (isFields(value) && Object.keys(value).length === 0);
}

const CONFIRMS = new Set<unknown>(["boolean", "bool", "confirm", "confirmation", "yes_no"]);
const isConfirm = (fields: Fields) => CONFIRMS.has(fields.type) || CONFIRMS.has(fields.kind);

// Questions that name the texts which answer them.
const TEXTS: [RegExp, string, string][] = [
  [/\byes\s*(\/|or)\s*no\b|["'`]yes["'`]/i, "yes", "no"],
  [/\bsim\s*(\/|ou)\s*não\b|["'`]sim["'`]/i, "sim", "não"],
  [/[([]\s*y\s*\/\s*n\s*[)\]]|["'`]y["'`]/i, "y", "n"],
  [/[([]\s*s\s*\/\s*n\s*[)\]]|["'`]s["'`]/i, "s", "n"],
];
const APPROVES = new RegExp(
  "\\b(approve|confirm|proceed|go ahead|continue|go on|allow|accept|publish|agree|(shall|should|may|can) (i|we)|(want|like) (me|us) to" +
  "|(is|are|does|do) (this|that|it|these|they|the \\w+) (\\w+ )?(ok|okay|fine|correct|right|good)" +
  "|aprovas?|confirmas?|continuar|prosseguir|aceitas?|concordas?|autorizas?|publicar|posso|podemos|devo|devemos|está (tudo )?(bem|certo|correto))\\b[^?]*\\?",
  "i",
);
const EITHER = /\b(approve|accept|aprove|aprovar|aceitar)\s*(\/|or|ou)\s*(reject|deny|decline|rejeite|rejeitar|recusar)\b/i;
const ASKS_MORE = /(^|[.!?\n:;,]\s+|\b(or|ou) )(what|which|who|whom|whose|when|where|why|how|o que|qual|quais|quem|quando|onde|como|quant[oa]s?|por ?que)\b[^?]*\?/i;
const OTHERWISE = /\b(or|ou) (stop|cancel|abort|edit|change|revise|quit|parar|cancelar|alterar|mudar)\b/i;

/** Return whether a question can be answered by yes or no: the graph takes any text for a yes. */
function isYesNo(words: string): boolean {
  return EITHER.test(words) || (APPROVES.test(words) && !ASKS_MORE.test(words) && !OTHERWISE.test(words));
}

const yesNo = (yes: unknown, no: unknown): Option[] => [{ value: yes, label: "yes" }, { value: no, label: "no" }];

function listOf(value: unknown): unknown[] | undefined {
  const fields = isFields(value) ? value : {};
  return CHOICES.map((key) => fields[key]).find((each) => Array.isArray(each)) ?? (isScalars(value) ? value : undefined);
}

function isScalars(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string" || typeof each === "number");
}

export function optionOf(each: unknown): Option {
  if (!isFields(each)) return { value: each, label: capital(String(each)) };
  const value = each.value ?? each.id ?? each.label ?? each.name ?? each;
  const label = each.label ?? each.name ?? each.title ?? value;
  return { value, label: typeof label === "string" ? capital(label) : JSON.stringify(label) };
}

function capital(text: string): string {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

const YES = new Set(["yes", "y", "sim", "s", "true", "approve", "aprovar"]);
const NO = new Set(["no", "n", "não", "nao", "false", "reject", "rejeitar"]);

/** Return whether a text says plainly yes or no; undefined if it does not. */
function saysYes(text: string): boolean | undefined {
  const plain = text.normalize("NFC").toLocaleLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, " ").trim();
  return YES.has(plain) ? true : NO.has(plain) ? false : undefined;
}

/**
 * Return the answer that a text means: one of those that are offered, or the text.
 *
 * Undefined if others than texts are offered, and it means none: a graph would take "not yet" for a yes.
 */
export function meantBy(text: string, options: Option[]): unknown {
  const same = text.toLocaleLowerCase();
  const names = ({ value, label }: Option) => [label, typeof value === "object" ? "" : String(value)];
  const exact = options.find((each) => names(each).some((name) => name.toLocaleLowerCase() === same));
  if (exact !== undefined) return exact.value;
  const isYes = saysYes(text);
  const meant = isYes === undefined ? [] : options.filter((each) => names(each).some((name) => saysYes(name) === isYes));
  if (meant.length === 1) return meant[0]?.value;
  return options.every((each) => typeof each.value === "string") ? text : undefined;
}
