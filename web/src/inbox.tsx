// Questions of all conversations in one list, and the last answers.
import { useState } from "react";
import * as api from "./api";
import { ago, t } from "./i18n";
import { Icon } from "./icon";
import { explain } from "./problems";
import type { StartProps } from "./products/props";
import { Answers, answersOf, Questions, type Given } from "./question";
import { go } from "./route";
import { graphOf, titleOf } from "./threads";

interface Answered {
  thread: api.Thread;
  given: Given[];
}

interface Props {
  /** The threads that wait for an answer; null while they are read. */
  threads: api.Thread[] | null;
  onStarted: StartProps["onStarted"];
}

export function Inbox({ threads, onStarted }: Props) {
  const [answered, setAnswered] = useState<Answered[]>([]);
  const [problem, setProblem] = useState<unknown>(null);
  const answer = async (thread: api.Thread, answers: api.Fields): Promise<boolean> => {
    try {
      await api.respond(thread.thread_id, answers);
    } catch (error) {
      setProblem(error);
      return false;
    }
    setProblem(null);
    // What is shown is what the server has recorded.
    const given = answersOf(await api.runs(thread.thread_id, 5), []).slice(-1);
    setAnswered((old) => [{ thread, given }, ...old]);
    return true;
  };
  return (
    <div className="page">
      <section className="inbox">
        <h1>{t("inbox")}</h1>
        {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
        {threads === null && problem === null && <p className="empty" role="status">{t("loading")}</p>}
        {threads?.length === 0 && <p className="empty"><Icon name="inbox" size={32} /><br />{t("noInbox")}</p>}
        {threads?.map((thread) => (
          <article key={thread.thread_id} aria-label={titleOf(thread)}>
            <Heading thread={thread} />
            <Questions
              graph={graphOf(thread)}
              threadId={thread.thread_id}
              questions={api.questionsOf(thread)}
              onAnswer={(answers) => answer(thread, answers)}
              onStarted={onStarted}
            />
          </article>
        ))}
        {answered.length > 0 && (
          <section className="stack" aria-label={t("answeredBefore")}>
            <h2>{t("answeredBefore")}</h2>
            {answered.map(({ thread, given }) => (
              <div key={thread.thread_id}>
                <Heading thread={thread} />
                <Answers given={given} />
              </div>
            ))}
          </section>
        )}
      </section>
    </div>
  );
}

function Heading({ thread }: { thread: api.Thread }) {
  return (
    <header className="row">
      <h2 className="clip">{titleOf(thread)}</h2>
      <span className="meta grow">{api.label(graphOf(thread))} · {ago(thread.updated_at)}</span>
      <button
        className="small"
        onClick={() => go({ thread: thread.thread_id, assistant: graphOf(thread) })}
      >
        {t("open")}
      </button>
    </header>
  );
}
