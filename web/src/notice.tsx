// What keeps a conversation from going on, and what helps.
import * as api from "./api";
import type { State } from "./api";
import { draft, keepDraft } from "./drafts";
import { Fold } from "./fold";
import { t } from "./i18n";
import { explain, isGone } from "./problems";
import { go } from "./route";
import type { Conversation } from "./use-conversation";

/** Say above the composer what stands in the way. */
export function Notice({ state, threadId, graph }: { state: Conversation; threadId: string; graph: string }) {
  const { server, problem, isBusy, isReadOnly } = state;
  if (isReadOnly) return <Closed threadId={threadId} graph={graph} />;
  if (isGone(problem)) {
    return (
      <p className="alert row" role="alert">
        <span>{explain(problem)}</span>
        <button className="small" onClick={() => go({ assistant: graph })}>{t("newThread")}</button>
      </p>
    );
  }
  if (problem !== null) {
    return (
      <p className="alert row" role="alert">
        <span>{explain(problem)}</span>
        <button className="small" onClick={state.reconnect}>{t("reconnect")}</button>
      </p>
    );
  }
  if (server === null || isBusy) return null;
  if (server.thread.status === "error") return <Failed history={server.history} onAgain={() => void state.proceed()} />;
  if (state.pausedBefore.length > 0) {
    return (
      <p className="notice row" role="status">
        <span>{t("paused")} {state.pausedBefore.join(", ")}</span>
        <button className="small" onClick={() => void state.proceed()}>{t("proceed")}</button>
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

interface FailedProps {
  history: State[];
  onAgain: () => void;
}

/** Say that the last run has failed, and why if it is in words. What the graph has raised is behind a fold. */
function Failed({ history, onAgain }: FailedProps) {
  const raised = raisedIn(history[0]);
  const words = raised.map(wordsOf).find((each) => each !== undefined);
  return (
    <div className="alert stack tight">
      <div className="row">
        <p className="grow" role="alert" dir="auto">{t("failed")} {words ?? t("tryAgain")}</p>
        <button className="small" onClick={onAgain}>{t("retry")}</button>
      </div>
      {raised.length > 0 && (
        <Fold summary={<summary>{t("cause")}</summary>}>
          {raised.map((each) => <pre key={each} className="exception" dir="ltr">{each}</pre>)}
        </Fold>
      )}
    </div>
  );
}

/** Return what the steps of a failed run have raised, each once. */
function raisedIn(state: State | undefined): string[] {
  const found = (state?.tasks ?? []).map((task) => task.error).filter((error) => error != null);
  return [...new Set(found.map((error) => (typeof error === "string" ? error : JSON.stringify(error))))];
}

// Mistakes in a program, whose messages are about its names and values.
const MISTAKES = new Set([
  "AssertionError", "AttributeError", "ImportError", "IndexError", "KeyError", "ModuleNotFoundError", "NameError",
  "NotImplementedError", "RecursionError", "StopIteration", "SyntaxError", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
  "ValidationError", "ZeroDivisionError",
]);
const RAISED = /^(\w+)\((["'])([^\n\\]{1,300})\2,?\)$/;

/** Return the message of an exception if a graph has written it for people: a sentence, and no mistake in its program. */
export function wordsOf(raised: string): string | undefined {
  const [, name, , words] = RAISED.exec(raised) ?? [];
  return name !== undefined && words !== undefined && !MISTAKES.has(name) && /^[\p{Lu}\p{Lo}].* /u.test(words) ? words : undefined;
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
