// A conversation: its messages, its questions, and the box to write in.
import { lazy, Suspense, useCallback, useMemo, useRef, useState, type ReactNode } from "react";
import { settingsOf } from "./assistants/client";
import { ACCEPTED, blockOf } from "./attachments/blocks";
import { Composer } from "./composer";
import { useActions, useFocus } from "./focus";
import { t } from "./i18n";
import { Icon } from "./icon";
import { inputOf, Pending } from "./pending";
import { LOOSE, placed, type UiMessage } from "./generative/messages";
import { Progress } from "./generative/progress";
import { messagesOf } from "./messages-of";
import { Notice } from "./notice";
import { isGone } from "./problems";
import { products } from "./products";
import type { StartProps } from "./products/props";
import { Answers, answersBelow, answersOf, Questions } from "./question";
import { askedOf, meantBy } from "./questions/asked";
import { withoutTools } from "./shown";
import { entriesOf } from "./state/entries";
import { w as stateWord } from "./state/words";
import { Title } from "./title";
import { showTools, toolsShown } from "./tools-shown";
import { Transcript } from "./transcript";
import { useConversation } from "./use-conversation";
import { Versions } from "./versions";

const StatePanel = lazy(() => import("./state/panel").then((found) => ({ default: found.StatePanel })));
const Result = lazy(() => import("./state/result"));
const Again = lazy(() => import("./state/again"));
const Settings = lazy(() => import("./assistants/conversation"));
const UiMessages = lazy(() => import("./generative/view"));

// A graph that the page does not know may take any file.
const ANY_FILE = { accept: ACCEPTED, read: blockOf };

interface Props {
  threadId: string;
  graph: string;
  name: string;
  onStarted: StartProps["onStarted"];
}

export function Conversation({ threadId, graph, name, onStarted }: Props) {
  const state = useConversation(threadId, graph);
  const { server, values, ui, say, answer, isBusy, isReadOnly, questions } = state;
  const [hasTools, setTools] = useState(toolsShown);
  const messages = useMemo(() => (hasTools ? state.messages : withoutTools(state.messages)), [hasTools, state.messages]);
  const last = messages.at(-1);
  const isAnswering = isBusy && last?.role === "ai";
  const product = products[graph];
  const { View, Header, Answer, Message, intake } = product ?? {};
  const attachments = product === undefined ? ANY_FILE : product.attachments;
  const hasState = product === undefined && entriesOf(state.values).length > 0;
  const Panel = product === undefined ? (hasState ? StatePanel : undefined) : product.Panel;
  const panelName = product === undefined ? () => stateWord("state") : product.panelName;
  const [isBeside, setBeside] = useState(() => product !== undefined && matchMedia("(min-width: 1100px)").matches);
  // A graph without messages shows its state instead.
  const runs = server?.runs ?? [];
  const isChat = product !== undefined || messages.length > 0 || runs.length === 0 || runs.some((run) => inputOf(run).length > 0);
  // A question is answered in its card.
  const isAsked = product?.Question === undefined && !isReadOnly && questions.length > 0;
  const assistant = settingsOf(server?.thread.metadata ?? {}).assistant ?? graph;
  const page = useRef<HTMLElement>(null);
  useFocus(page, isAsked);
  const actions = useActions(page, state.actions);
  const submit = useCallback(
    (text: string) => {
      const question = questions[0];
      if (question === undefined) return say(text);
      const asked = askedOf(question);
      const meant = asked.kind === "open" ? meantBy(text, asked.options) : undefined;
      return meant === undefined ? Promise.resolve(false) : answer({ [question.id]: meant });
    },
    [answer, questions, say],
  );
  const takes = product?.takes;
  const given = useMemo(() => answersOf(server?.runs ?? [], server?.history ?? [], takes), [server, takes]);
  const ids = messages.map((each) => each.id).join("\n");
  const answers = useMemo(() => answersBelow(given, new Set(ids.split("\n").filter(Boolean))), [given, ids]);
  const components = useMemo(() => {
    const show = (list: UiMessage[]) => (
      <Suspense><UiMessages graph={graph} messages={list} onSubmit={(text) => void submit(text)} /></Suspense>
    );
    const found = placed(product === undefined ? ui : [], messagesOf(values), new Set(messages.map((each) => each.id)));
    return new Map([...found].map(([id, list]) => [id, show(list)]));
  }, [graph, messages, product, submit, ui, values]);
  const extras = useMemo(() => {
    const found = new Map<string, ReactNode>(components);
    for (const [id, list] of answers) {
      if (id !== null) found.set(id, <>{components.get(id)}<Answers given={list} /></>);
    }
    return found;
  }, [answers, components]);
  const hasProgress = product === undefined && state.progress !== undefined;
  const view = {
    threadId, isBusy, values: state.values, readOnly: isReadOnly, say: (text: string) => state.say(text),
  };
  return (
    <section className={Panel !== undefined && isBeside ? "conversation beside" : "conversation"} aria-label={name} ref={page}>
      <header className="row">
        <h1 className="grow clip">{server === null ? name : <Title of={server.thread} />}</h1>
        {Header !== undefined && <Suspense><Header /></Suspense>}
        {Panel !== undefined && (
          <button className="small" aria-pressed={isBeside} onClick={() => setBeside(!isBeside)}>{panelName?.()}</button>
        )}
        {isReadOnly && <span className="badge warn">{t("readOnly")}</span>}
        {product !== undefined || server === null ? (
          <span className="badge">{name}</span>
        ) : (
          <Suspense fallback={<span className="badge">{name}</span>}>
            <Settings
              thread={server.thread}
              graph={graph}
              isReadOnly={isReadOnly}
              hasTools={hasTools}
              onTools={(areShown) => {
                showTools(areShown);
                setTools(areShown);
              }}
            />
          </Suspense>
        )}
      </header>
      <Transcript
        messages={messages}
        values={state.values}
        isGrowing={isAnswering}
        Answer={Answer}
        Extra={Message}
        stored={state.stored}
        storedValues={state.storedValues}
        places={isBusy ? NONE : state.places}
        readOnly={isReadOnly}
        actions={actions}
        extras={extras}
        below={View !== undefined && <Suspense><View {...view} /></Suspense>}
      >
        {state.isLoading && <p className="empty" role="status">{t("loading")}</p>}
        {product === undefined && (
          <Suspense>
            {components.get(LOOSE)}
            {!isChat && <Result values={state.values} assistant={assistant} isBusy={isBusy} />}
            {!isChat && !isBusy && state.results.versions.length > 1 && (
              <Versions place={state.results} label={stateWord("results")} onShow={actions.show} />
            )}
            {!isChat && !isBusy && !isReadOnly && questions.length === 0 && (
              <Again key={runs[0]?.run_id} assistant={assistant} last={runs.map((run) => run.kwargs?.input).find((input) => input != null)} onRun={(input) => void state.run(input)} />
            )}
          </Suspense>
        )}
        {server !== null && isChat && messages.length === 0 && !isBusy && questions.length === 0 && (
          <p className="empty">{t("empty")}</p>
        )}
        {isBusy && !isAnswering && !hasProgress && state.problem === null && (
          <p className="thinking" role="status"><i className="dot busy" />{t("thinking")}</p>
        )}
        {hasProgress && <Progress event={state.progress} />}
        {isBusy && !isChat && <p><button onClick={state.stop}><Icon name="stop" />{t("stop")}</button></p>}
        <Announce text={isAnswering ? last.text : ""} />
        <Answers given={answers.get(null) ?? []} />
        {!isReadOnly && (
          <Questions
            graph={graph}
            threadId={threadId}
            questions={questions}
            onAnswer={state.answer}
            onStarted={onStarted}
            hasComposer={isChat}
          />
        )}
      </Transcript>
      <div className="below">
        <Notice state={state} threadId={threadId} graph={graph} />
        <Pending runs={state.queued} onCancel={state.withdraw} />
        {intake !== undefined && <Suspense><intake.View {...view} /></Suspense>}
        {/* Hidden, it keeps what is typed and the files. A graph without messages takes no text at all. */}
        {isChat && <div hidden={isAsked || isGone(state.problem)}>
          <Composer
            place={threadId}
            onSend={state.say}
            onStop={isBusy ? state.stop : undefined}
            readOnly={isReadOnly}
            placeholder={t(questions.length > 0 ? "placeholderAnswer" : isBusy ? "placeholderBusy" : "placeholder")}
            attachments={attachments}
            onFiles={intake && ((files, isText) => intake.take(threadId, files, isText))}
          />
        </div>}
      </div>
      {Panel !== undefined && isBeside && (
        <aside className="side" aria-label={panelName?.()}>
          <Suspense fallback={<p className="empty" role="status">{t("loading")}</p>}><Panel {...view} /></Suspense>
        </aside>
      )}
    </section>
  );
}

const NONE = new Map<string, never>();

/** Read an answer to screen readers sentence by sentence, not token by token. */
function Announce({ text }: { text: string }) {
  return <p className="hidden" aria-live="polite">{lastSentence(text)}</p>;
}

const SEEN = 2_000;

/** Return the last sentence of a text that is complete. */
export function lastSentence(text: string): string {
  const sentences = text.slice(-SEEN).match(/[^.!?\n]+[.!?\n]+(?=\s|$)/g);
  return sentences?.at(-1)?.trim() ?? "";
}
