import { describe, expect, it } from "vitest";
import { blockOf, rewritten, writtenIn } from "../src/attachments/blocks";
import { matches, sift } from "../src/attachments/files";
import { NOTHING_WRITTEN, placed, uiOf, withEvent } from "../src/generative/messages";
import { lineOf } from "../src/generative/progress";
import { askedOf, detailsOf, meantBy, optionsOf, questionOf, type Made } from "../src/questions/asked";
import { emptied, problemsOf } from "../src/schema-form/problems";
import { clean, initial, schemaOf, shapeOf, Unparsed } from "../src/schema-form/schema";
import { exampleOf, sentenceOf } from "../src/schema-form/words";

const SCHEMA = {
  type: "object",
  required: ["name", "size", "owner"],
  properties: {
    name: { type: "string", minLength: 2 },
    size: { type: "integer", maximum: 5, default: 1 },
    note: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    owner: { $ref: "#/$defs/Owner" },
    tags: { type: "array", items: { type: "string" } },
    any: {},
  },
  $defs: { Owner: { type: "object", required: ["id"], properties: { id: { type: "integer" }, isOpen: { type: "boolean" } } } },
};

describe("a form of a JSON Schema", () => {
  it("knows how each value is edited", () => {
    const kinds = Object.values(SCHEMA.properties).map((each) => shapeOf(each, SCHEMA).kind);
    expect(kinds).toEqual(["text", "integer", "text", "object", "list", "json"]);
    expect(shapeOf(SCHEMA.properties.note, SCHEMA).isNullable).toBe(true);
    expect(shapeOf({ type: ["number", "null"] }, {})).toMatchObject({ kind: "number", isNullable: true });
    expect(shapeOf({ anyOf: [{ type: "string" }, { type: "number" }] }, {}).kind).toBe("json");
    const circle = { $defs: { A: { $ref: "#/$defs/A" } } };
    expect(shapeOf({ $ref: "#/$defs/A" }, circle).kind).toBe("json");
  });
  it("begins with the defaults", () => {
    expect(initial(SCHEMA, SCHEMA)).toEqual({ size: 1, note: null, owner: {} });
  });
  it("names each problem at its field", () => {
    const found = problemsOf(SCHEMA, { name: "x", size: 9, owner: {}, tags: [1] });
    expect(found.get("/name")).toEqual({ word: "minLength", limit: 2 });
    expect(found.get("/size")).toEqual({ word: "maximum", limit: 5 });
    expect(found.get("/owner/id")?.word).toBe("required");
    expect(found.get("/tags/0")?.word).toBe("type");
    expect(problemsOf(SCHEMA, { name: "xy", size: 2, note: null, owner: { id: 1 } })).toEqual(new Map());
    expect(problemsOf(SCHEMA, { owner: { id: new Unparsed("many", "integer") } }).get("/owner/id")?.word).toBe("integer");
    expect(problemsOf(SCHEMA, {}, true).size).toBe(0);
  });
  it("refuses nothing by a schema that is wrong", () => {
    expect(problemsOf({ type: "object", properties: { a: { $ref: "#/none" } } }, { a: 1 }).size).toBe(0);
  });
  it("keeps the types of an example", () => {
    const example = { to: ["a"], copies: 2, isUrgent: false, inner: { text: "" }, mixed: [1, "a"] };
    expect(problemsOf(schemaOf(example), example).size).toBe(0);
    expect(problemsOf(schemaOf(example), { ...example, copies: "2" }).get("/copies")?.word).toBe("type");
    expect(problemsOf(schemaOf(example), { ...example, copies: 2.5 }).get("/copies")?.word).toBe("type");
    expect(schemaOf({ a: [1, 2.5], b: [1, 2], c: [] })).toMatchObject({
      properties: { a: { items: { type: "number" } }, b: { items: { type: "integer" } }, c: { type: "array" } },
    });
  });
  it("warns of a text that was filled in and is empty now", () => {
    const before = { to: "ana", cc: "", inner: { text: "a" }, n: 1 };
    expect([...emptied(before, { ...before, to: "", inner: { text: "" } }).keys()]).toEqual(["/to", "/inner/text"]);
    expect(emptied(before, before).size).toBe(0);
  });
  it("says in words what to write", () => {
    const say = (schema: Record<string, unknown>, value: unknown) => {
      const problem = problemsOf(schema, value).get("");
      return problem && sentenceOf(problem, schema);
    };
    expect(say({ type: "integer", minimum: 0 }, undefined)).toBe("Write a whole number.");
    expect(say({ type: "number" }, "old")).toBe("Write a number.");
    expect(say({ type: "integer", maximum: 150 }, 200)).toBe("The most is 150.");
    expect(say({ type: "string" }, undefined)).toBe("Fill this in.");
    expect(say({ type: "string", minLength: 1 }, "")).toBe("Fill this in.");
    expect(say({ type: "string", format: "email" }, "x")).toBe("Write an e-mail address, such as ana@example.com.");
    expect(say({ type: "string", pattern: "^[0-9]{5}$" }, "12")).toBe("It does not have the right form. An example: 12345");
    expect(say({ type: "string", pattern: "^(a|b)+$" }, "12")).toBe("It does not have the right form.");
    expect(say({ type: "string", pattern: "^(a|b)+$", examples: ["ab"] }, "12")).toMatch(/An example: ab$/);
  });
  it.each(["^[A-Z]{2}-\\d{4}$", "^\\d{4}-\\d{3}$", "^\\+[0-9]{2,3} [a-z]+$"])("has an example of the pattern %s", (pattern) => {
    expect(exampleOf(pattern)).toMatch(new RegExp(pattern));
  });
  it("leaves out what is not set", () => {
    expect(clean({ a: undefined, b: { c: undefined }, d: [undefined] })).toEqual({ b: {}, d: [null] });
  });
});

const reply = (value: unknown, made: Made[], schema?: unknown) => {
  const asked = askedOf({ value, response_schema: schema });
  return asked.kind === "actions" ? asked.reply(made) : null;
};

describe("an interrupt", () => {
  const batch = {
    action_requests: [{ name: "mail", args: { to: "a" }, description: "" }, { name: "drop", args: {} }],
    review_configs: [
      { action_name: "mail", allowed_decisions: ["approve", "edit"] },
      { action_name: "drop", allowed_decisions: ["reject"] },
    ],
  };
  it("of LangChain's middleware is answered by decisions", () => {
    const asked = askedOf({ value: batch });
    expect(asked.kind === "actions" && asked.actions.map((each) => each.allowed)).toEqual([["approve", "edit"], ["reject"]]);
    expect(reply(batch, [{ type: "edit", args: { to: "b" } }, { type: "reject", text: "no" }])).toEqual({
      decisions: [{ type: "edit", edited_action: { name: "mail", args: { to: "b" } } }, { type: "reject", message: "no" }],
    });
  });
  it("of one call is answered by one decision, as its schema allows", () => {
    const args = { type: "object", properties: { path: { type: "string" } } };
    const schema = {
      $defs: {
        Edit: { properties: { type: { const: "edit" }, edited_action: { $ref: "#/$defs/Call" } } },
        Call: { properties: { name: { const: "drop" }, args } },
        Yes: { properties: { type: { const: "approve" } } },
      },
      oneOf: [{ $ref: "#/$defs/Yes" }, { $ref: "#/$defs/Edit" }],
    };
    const value = { type: "tool_approval", tool_call_id: "1", name: "drop", args: { path: "a" }, description: "" };
    const asked = askedOf({ value, response_schema: schema });
    expect(asked.kind === "actions" && asked.actions[0]).toMatchObject({ allowed: ["approve", "edit"], schema: args });
    expect(reply(value, [{ type: "approve" }], schema)).toEqual({ type: "approve" });
  });
  it("of the agent inbox is answered by a list", () => {
    const value = { action_request: { action: "book", args: { seat: 1 } }, config: { allow_accept: true, allow_edit: true } };
    expect(reply(value, [{ type: "approve" }])).toEqual([{ type: "accept", args: null }]);
    expect(reply([value], [{ type: "edit", args: { seat: 2 } }])).toEqual([{ type: "edit", args: { action: "book", args: { seat: 2 } } }]);
    expect(reply(value, [{ type: "respond", text: "later" }])).toEqual([{ type: "response", args: "later" }]);
  });
  it("offers answers of the right type", () => {
    const values = (value: unknown) => optionsOf(value).map((each) => each.value);
    expect(values({ options: [1, { id: "a", label: "A" }] })).toEqual([1, "a"]);
    expect(values("Do you approve this action?")).toEqual([true, false]);
    expect(values("Go on? (yes/no)")).toEqual(["yes", "no"]);
    expect(values({ action: "send", message: "Approve sending this email?" })).toEqual([{ action: "approve" }, { action: "reject" }]);
    expect(values({ essay: "Cats", action: "Please approve/reject the essay" })).toEqual([true, false]);
    expect(values("Shall I delete the file?")).toEqual([true, false]);
    expect(values("Aprova o seguinte texto?")).toEqual([true, false]);
    expect(values("Type 'y' to continue; otherwise, say what to change. Do you approve?")).toEqual(["y", "n"]);
    const texts = ["What is your name?", "Which plan do you approve?", "Please confirm it. What is your address?", "Is this right, or what should I change?"];
    expect(texts.flatMap(values)).toEqual([]);
    expect(questionOf({ action: "send" })).toBe("");
  });
  it("is never answered by the opposite of what a person types", () => {
    const bools = optionsOf("Do you approve this action?");
    const typed = (options: typeof bools, ...texts: string[]) => texts.map((each) => meantBy(each, options));
    expect(typed(bools, "no", "No.", "NÃO!", "n", "false", "reject")).toEqual(Array(6).fill(false));
    expect(typed(bools, "yes", "Sim", "y", "True")).toEqual(Array(4).fill(true));
    expect(typed(bools, "not yet", "no, never", "1")).toEqual([undefined, undefined, undefined]);
    expect(typed(optionsOf("Go on? (yes/no)"), "Não", "sim", "later")).toEqual(["no", "yes", "later"]);
    const decisions = optionsOf({ action: "send", message: "Approve sending this email?" });
    expect(typed(decisions, "no", "Approve", "hm")).toEqual([{ action: "reject" }, { action: "approve" }, undefined]);
    expect(typed(optionsOf({ options: ["free", "team"] }), "Team", "none")).toEqual(["team", "none"]);
    expect(typed(optionsOf({ options: [1, 2] }), "2", "3")).toEqual([2, undefined]);
    expect(typed([], "no", "42")).toEqual(["no", "42"]);
  });
  it("is a form if it has a schema", () => {
    expect(askedOf({ value: { question: "How old?", schema: { type: "integer" } } })).toEqual({ kind: "form", schema: { type: "integer" } });
    expect(askedOf({ value: "Review", response_schema: SCHEMA }).kind).toBe("form");
    expect(askedOf({ value: { question: "Do you approve the trip?", schema: SCHEMA } }).kind).toBe("form");
    const yesNo = { kind: "open", isFree: false, options: [{ value: true }, { value: false }] };
    expect(askedOf({ value: { question: "Do you agree?", schema: { type: "boolean" } } })).toMatchObject(yesNo);
    expect(askedOf({ value: { question: "Do you agree?", type: "boolean" } })).toMatchObject(yesNo);
    expect(askedOf({ value: { task: "Review", score: 1 } }).kind).toBe("open");
    expect(detailsOf({ question: "Right?", output: "text", options: [] })).toEqual({ output: "text" });
  });
});

const ui = (id: string, props: object, merge = false, message_id?: string) =>
  ({ type: "ui", id, name: "card", props, metadata: { merge, message_id } });

describe("components of a graph", () => {
  it("are changed and removed by later messages", () => {
    const found = uiOf([ui("1", { a: 1 }), ui("2", {}), ui("1", { b: 2 }, true), { type: "remove-ui", id: "2" }]);
    expect(found.map((each) => [each.id, each.props])).toEqual([["1", { a: 1, b: 2 }]]);
  });
  it("grow while a run writes", () => {
    const events = [ui("2", { a: 1 }), "half", ui("2", { b: 1 }, true), ui("2", { b: 2 }, true), ui("1", { c: 3 }, true), { type: "remove-ui", id: "0" }];
    const written = events.reduce((old, each) => withEvent(old, "run", each), NOTHING_WRITTEN);
    expect([written.ui.length, written.last]).toEqual([3, "half"]);
    const found = uiOf([ui("0", {}), ui("1", { a: 1 })], written.ui);
    expect(found.map((each) => [each.id, each.props])).toEqual([["1", { a: 1, c: 3 }], ["2", { a: 1, b: 2 }]]);
    expect(withEvent(written, "next", "first")).toEqual({ run: "next", ui: [], last: "first" });
  });
  it("stand below their messages", () => {
    const cards = uiOf(["shown", "silent", "early", "none"].map((of) => ui(of, {}, false, of === "none" ? undefined : of)));
    const messages = ["first", "shown", "silent", "last"].map((id) => ({ id }));
    const found = placed(cards, messages, new Set(["first", "shown", "last"]));
    expect([...found].map(([at, list]) => [at, ...list.map((each) => each.id)])).toEqual([["shown", "shown", "silent"], ["", "early", "none"]]);
  });
});

describe("progress of a run", () => {
  it.each([
    [{ type: "progress", step: "Reading", done: 1, total: 5, percent: 20 }, "Reading 1/5", 0.2],
    ["half of the way", "half of the way", undefined],
    [{ progress: { node: "write", status: "started" } }, "write · started", undefined],
    [{ token: "a", message_id: "x" }, "a", undefined],
    [{ percent: 250, label: "odd" }, "odd", 1],
    [{ count: 5 }, '{"count":5}', undefined],
    [{ step: 3, total: 4 }, "3/4", 0.75],
    [{ progress: 0.4 }, "40 %", 0.4],
    [null, "null", undefined],
  ])("is a line: %j", (event, text, part) => {
    expect(lineOf(event)).toEqual({ text, part });
  });
});

describe("a file", () => {
  it("is a standard block with its name", async () => {
    const png = new File(["abc"], "a.png", { type: "image/png" });
    expect(await blockOf(png)).toEqual({ type: "image", base64: "YWJj", mime_type: "image/png", extras: { filename: "a.png" } });
    expect(await blockOf(new File(["abc"], "a.pdf", { type: "application/pdf" }))).toMatchObject({ type: "file", extras: { filename: "a.pdf" } });
    expect(await blockOf(new File(["abc"], "a.md"))).toEqual({ type: "text", text: "a.md:\n\nabc" });
  });
  it("is taken as the input's attribute says", () => {
    const pdf = new File(["a"], "a.PDF", { type: "application/pdf" });
    expect(matches(pdf, "image/*, .pdf")).toBe(true);
    expect(matches(pdf, "image/*")).toBe(false);
  });
  it("is refused by a sentence with its name", () => {
    const file = (name: string, text = "a") => new File([text], name);
    const { good, problems } = sift([file("a.pdf"), file("b.pdf"), file("b.pdf"), file("c.exe"), file("d.pdf", "")], [file("a.pdf")], ".pdf");
    expect(good.map((each) => each.name)).toEqual(["b.pdf"]);
    expect(problems.map((each) => each.split(": "))).toEqual([
      ["The file is attached already", "a.pdf"],
      ["The file is attached already", "b.pdf"],
      ["This assistant takes no such file", "c.exe"],
      ["The file is empty", "d.pdf"],
    ]);
  });
  it("stays when the text of its message is edited", () => {
    const image = { type: "image", base64: "YWJj" };
    const notes = { type: "text", text: "notes.txt:\n\nremember" };
    const content = [{ type: "text", text: "what is it?" }, notes, image];
    expect(writtenIn(content)).toBe("what is it?");
    expect(rewritten(content, "and now?")).toEqual([{ type: "text", text: "and now?" }, notes, image]);
    expect(rewritten([image], "and now?")).toEqual([{ type: "text", text: "and now?" }, image]);
    expect(rewritten("what is it?", "and now?")).toBe("and now?");
  });
});
