// Questions of all conversations in one list, and the last answers.
import { useCallback, useEffect, useState } from "react";
import * as api from "./api";
import { ago, t } from "./i18n";
import { Icon } from "./icon";
import { usePolling } from "./polling";
import { explain } from "./problems";
import type { StartProps } from "./products/props";
import { Answers, answersOf, Ask, type Given } from "./question";
import { go } from "./route";
import { graphOf, titleOf } from "./threads";

const EVERY_MS = 5_000;

interface Answered {
  thread: api.Thread;
  given: Given[];
}

interface Props {
  onChange: () => Promise<void>;
  onStarted: StartProps["onStarted"];
}

export function Inbox({ onChange, onStarted }: Props) {
  const [threads, setThreads] = useState<api.Thread[] | null>(null);
  const [answered, setAnswered] = useState<Answered[]>([]);
  const [problem, setProblem] = useState<unknown>(null);
  const load = useCallback(async () => {
    try {
      setThreads(await api.waiting());
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, []);
  useEffect(() => {
    const first = setTimeout(() => void load(), 0);
    return () => clearTimeout(first);
  }, [load]);
  usePolling(load, EVERY_MS);
  const answer = async (thread: api.Thread, interrupt: string, value: unknown): Promise<boolean> => {
    try {
      await api.respond(thread.thread_id, interrupt, value);
    } catch (error) {
      setProblem(error);
      void load();
      return false;
    }
    setThreads((old) => old?.filter((each) => each.thread_id !== thread.thread_id) ?? null);
    setProblem(null);
    // What is shown is what the server has recorded.
    const given = answersOf(await api.runs(thread.thread_id, 5), []).slice(-1);
    setAnswered((old) => [{ thread, given }, ...old]);
    await onChange();
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
            {api.questionsOf(thread).map((each) => (
              <Ask
                key={each.id}
                graph={graphOf(thread)}
                threadId={thread.thread_id}
                value={each.value}
                onAnswer={(value) => answer(thread, each.id, value)}
                onStarted={onStarted}
              />
            ))}
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
