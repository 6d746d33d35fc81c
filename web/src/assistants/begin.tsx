// A new conversation of a graph that the page does not know: its messages, its inputs and its context.
import { useRef, useState } from "react";
import * as api from "../api";
import { ACCEPTED, blockOf, contentOf } from "../attachments/blocks";
import { Beginning } from "../beginning";
import { Composer, type Attachments } from "../composer";
import { keepDraft } from "../drafts";
import { hand } from "../handed";
import { runWith, useHolding } from "../holding";
import { t } from "../i18n";
import { Icon } from "../icon";
import { newId } from "../ids";
import { explain } from "../problems";
import type { StartProps } from "../products/props";
import { useKept } from "../questions/use-kept";
import { go } from "../route";
import { textOf } from "../shown";
import { focusProblem, SchemaForm } from "../schema-form/form";
import { problemsOf } from "../schema-form/problems";
import { clean, initial, isFields, propertiesOf, shapeOf, type Problems, type Schema } from "../schema-form/schema";
import { titled } from "../threads";
import { metadataOf } from "./client";
import { hasRequired, messagesIn, namesAll, without } from "./inputs";
import { AssistantSettings, isStandard } from "./settings";
import "./styles.css";
import { useChosen } from "./use-chosen";
import { useLoaded, type Loaded } from "./use-loaded";
import { w } from "./words";

const NONE: Problems = new Map();
// The assistant of a graph that the person has chosen last, for the time of the tab.
const LAST = "threadhold-assistant:";
const ATTACHMENTS: Attachments = { accept: ACCEPTED, read: blockOf };

export default function Begin({ assistant, onStarted }: StartProps) {
  const [loaded, setLoaded] = useLoaded(assistant.graph_id, assistant.assistant_id);
  const heading = (
    <>
      <button className="quiet small" onClick={() => go({})}><Icon name="left" size={14} />{t("back")}</button>
      <h1>{api.label(assistant.graph_id)}</h1>
      <p className="hint">{assistant.description}</p>
    </>
  );
  if (loaded === null) {
    return <div className="page"><div className="start">{heading}<p className="hint" role="status">{t("loading")}</p></div></div>;
  }
  return <Opening assistant={assistant} loaded={loaded} heading={heading} onLoaded={setLoaded} onStarted={onStarted} />;
}

interface OpeningProps extends StartProps {
  loaded: Loaded;
  heading: React.ReactNode;
  onLoaded: (loaded: Loaded) => void;
}

function Opening({ assistant, loaded, heading, onLoaded, onStarted }: OpeningProps) {
  const { assistants, schemas } = loaded;
  const messagesKey = messagesIn(schemas.input_schema);
  const isChat = messagesKey !== null;
  const inputSchema = without(schemas.input_schema, messagesKey);
  const id = useRef<string | null>(null);
  const holding = useHolding();
  const first = lastOf(assistants) ?? assistants.find(isStandard) ?? assistants[0] ?? assistant;
  const { chosen, context, isWrong, settings } = useChosen(loaded, onLoaded, first, undefined, (other) => {
    sessionStorage.setItem(`${LAST}${other.graph_id}`, other.assistant_id);
    id.current = null;
  });
  const [input, setInput] = useKept<unknown>(`inputs:${assistant.graph_id}`, () => (inputSchema === null ? {} : initial(inputSchema, inputSchema)));
  const [isTried, setTried] = useState(false);
  // The text with which it starts; of a form, none.
  const [sent, setSent] = useState<string | null>(null);
  const isStarting = sent !== null;
  const [problem, setProblem] = useState<unknown>(null);
  const page = useRef<HTMLDivElement>(null);
  const isPartial = inputSchema !== null && namesAll(inputSchema);
  const inputProblems = isTried && inputSchema !== null ? problemsOf(inputSchema, input, isPartial) : NONE;

  const start = async (messages: api.Fields[], title: string): Promise<boolean> => {
    setTried(true);
    setProblem(null);
    const isInputWrong = inputSchema !== null && problemsOf(inputSchema, input, isPartial).size > 0;
    if (isWrong() || isInputWrong) {
      focusProblem(page.current);
      return false;
    }
    setSent(textOf(messages[0]?.content));
    try {
      // A second attempt uses the thread of the first.
      const thread = (id.current ??= newId());
      const create = () => api.createThread(thread, assistant.graph_id, title, metadataOf({ assistant: chosen, context }));
      await holding.hold(create, () => Promise.resolve(undefined), setProblem);
      const other = clean(input) as api.Input;
      const whole = messagesKey === null ? (other ?? {}) : { ...(other as api.Fields | undefined), [messagesKey]: messages };
      const send = () => api.startRun(thread, chosen.assistant_id, whole, null, context);
      const [first] = messages;
      // Of a form, a second attempt could be a second run.
      const run = await (first === undefined ? send() : holding.hold(send, () => runWith(thread, messages), setProblem));
      if (first !== undefined) hand(thread, first, run.run_id);
      keepDraft(`inputs:${assistant.graph_id}`, "");
      onStarted(thread, assistant.graph_id, "");
      return true;
    } catch (error) {
      setProblem(error);
      setSent(null);
      return false;
    }
  };
  const say = (text: string, files: api.Fields[]) =>
    start([{ type: "human", content: contentOf(text, files), id: newId() }], titled(text));

  const form = inputSchema !== null && (
    <SchemaForm schema={inputSchema} label={w("inputs")} value={input} problems={inputProblems} onChange={setInput} isPartial={isPartial} />
  );
  const alert = problem !== null && <p className="alert" role="alert">{explain(problem)}</p>;
  if (!isChat) {
    return (
      <div className="page" ref={page}>
        <div className="start">
          {heading}
          <form
            className="stack inputs"
            noValidate
            onSubmit={(event) => {
              event.preventDefault();
              if (!isStarting) void start([], titleOf(inputSchema, input));
            }}
          >
            {form}
            <AssistantSettings {...settings} />
            {alert}
            <button className="primary send" disabled={isStarting}>{w("run")}</button>
          </form>
        </div>
      </div>
    );
  }
  return (
    <section className="conversation" ref={page}>
      {sent !== null && <Beginning text={sent} />}
      <div className="page" hidden={isStarting}>
        <div className="start">
          {heading}
          <p className="hint">{t("empty")}</p>
          <AssistantSettings {...settings} />
          {inputSchema !== null && (
            <details open={inputProblems.size > 0 || hasRequired(inputSchema) || undefined}>
              <summary>{w("moreInputs")}</summary>
              <div className="card">{form}</div>
            </details>
          )}
        </div>
      </div>
      <div className="below">
        {alert}
        <Composer place={`new:${assistant.graph_id}`} onSend={say} onStop={isStarting && problem !== null ? holding.giveUp : undefined} attachments={ATTACHMENTS} />
      </div>
    </section>
  );
}

function lastOf(assistants: api.Assistant[]): api.Assistant | undefined {
  return assistants.find((each) => sessionStorage.getItem(`${LAST}${each.graph_id}`) === each.assistant_id);
}

/** Name a conversation by the first text of its input. */
function titleOf(schema: Schema | null, input: unknown): string {
  if (schema === null || !isFields(input)) return typeof input === "string" ? titled(input) : "";
  const names = propertiesOf(schema).filter(([, each]) => shapeOf(each, schema).kind === "text").map(([name]) => name);
  const found = names.map((name) => input[name]).find((each) => typeof each === "string" && each.trim() !== "");
  return typeof found === "string" ? titled(found) : "";
}
