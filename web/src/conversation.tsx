// A conversation: its messages, its questions, and the box to write in.
import { Suspense, useState } from "react";
import * as api from "./api";
import { Composer } from "./composer";
import { draft, keepDraft } from "./drafts";
import { t } from "./i18n";
import { Pending } from "./pending";
import { explain } from "./problems";
import { products } from "./products";
import type { StartProps } from "./products/props";
import { Answers, answersOf, Ask } from "./question";
import { go } from "./route";
import { titleOf } from "./threads";
import { Transcript } from "./transcript";
import { useConversation, type Conversation as State } from "./use-conversation";

interface Props {
  threadId: string;
  graph: string;
  name: string;
  onChange: () => Promise<void>;
  onStarted: StartProps["onStarted"];
}

export function Conversation({ threadId, graph, name, onChange, onStarted }: Props) {
  const state = useConversation(threadId, graph, onChange);
  const { server, messages, isBusy, isReadOnly, questions } = state;
  const last = messages.at(-1);
  const isAnswering = isBusy && last?.role === "ai";
  const { View, Header, Panel, panelName, Answer, Message, attachments } = products[graph] ?? {};
  const [isBeside, setBeside] = useState(() => matchMedia("(min-width: 1100px)").matches);
  const view = {
    threadId, isBusy, values: state.values, readOnly: isReadOnly, say: (text: string) => state.say(text),
  };
  return (
    <section className={Panel !== undefined && isBeside ? "conversation beside" : "conversation"} aria-label={name}>
      <header className="row">
        <h1 className="grow clip">{server === null ? name : titleOf(server.thread)}</h1>
        {Header !== undefined && <Suspense><Header /></Suspense>}
        {Panel !== undefined && (
          <button className="small" aria-pressed={isBeside} onClick={() => setBeside(!isBeside)}>{panelName?.()}</button>
        )}
        {isReadOnly && <span className="badge warn">{t("readOnly")}</span>}
        <span className="badge">{name}</span>
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
        actions={state.actions}
        below={View !== undefined && <Suspense><View {...view} /></Suspense>}
      >
        {state.isLoading && <p className="empty" role="status">{t("loading")}</p>}
        {!state.isLoading && messages.length === 0 && !isBusy && questions.length === 0 && (
          <p className="empty">{t("empty")}</p>
        )}
        {isBusy && !isAnswering && (
          <p className="thinking" role="status"><i className="dot busy" />{t("thinking")}</p>
        )}
        <Announce text={isAnswering ? last.text : ""} />
        <Answers given={answersOf(server?.runs ?? [], server?.history ?? [])} />
        {!isReadOnly && questions.map((each) => (
          <Ask
            key={each.id}
            graph={graph}
            threadId={threadId}
            value={each.value}
            onAnswer={(answer) => state.answer(each.id, answer)}
            onStarted={onStarted}
          />
        ))}
      </Transcript>
      <div className="below">
        <Notice state={state} threadId={threadId} graph={graph} />
        <Pending runs={state.queued} onCancel={state.withdraw} />
        <Composer
          place={threadId}
          onSend={state.say}
          onStop={isBusy ? state.stop : undefined}
          readOnly={isReadOnly}
          placeholder={t(questions.length > 0 ? "placeholderAnswer" : isBusy ? "placeholderBusy" : "placeholder")}
          attachments={attachments}
        />
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

/** Say what keeps the conversation from going on, and what helps. */
function Notice({ state, threadId, graph }: { state: State; threadId: string; graph: string }) {
  const { server, problem, isBusy, isReadOnly } = state;
  if (isReadOnly) return <Closed threadId={threadId} graph={graph} />;
  if (problem !== null) {
    return (
      <p className="alert row" role="alert">
        <span>{explain(problem)}</span>
        <button className="small" onClick={state.reconnect}>{t("reconnect")}</button>
      </p>
    );
  }
  if (server === null || isBusy) return null;
  if (server.thread.status === "error") {
    return (
      <p className="alert row" role="alert">
        <span>{t("failed")} {causeOf(server.history[0])}</span>
        <button className="small" onClick={() => void state.proceed()}>{t("retry")}</button>
      </p>
    );
  }
  if (server.runs[0]?.status === "interrupted" && !api.asks(server.thread)) {
    return (
      <p className="notice row" role="status">
        <span>{t("stopped")}</span>
        <button className="small" onClick={() => void state.proceed()}>{t("proceed")}</button>
      </p>
    );
  }
  return null;
}

function causeOf(state: api.State | undefined): string {
  const cause = state?.tasks?.find((task) => task.error != null)?.error;
  return typeof cause === "string" ? cause.slice(0, 300) : "";
}

/** Offer another conversation in place of a closed one. A text that was typed goes with it. */
function Closed({ threadId, graph }: { threadId: string; graph: string }) {
  const text = draft(threadId);
  const resume = async () => {
    const found = await api.resume(threadId);
    if (found.thread_id === undefined) return;
    keepDraft(found.thread_id, text);
    keepDraft(threadId, "");
    go({ thread: found.thread_id, assistant: graph });
  };
  return (
    <p className="notice warn row" role="status">
      <span>{text === "" ? t("locked") : t("lockedDraft")}</span>
      <button className="small" onClick={() => void resume()}>{t("resumeNew")}</button>
    </p>
  );
}

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
