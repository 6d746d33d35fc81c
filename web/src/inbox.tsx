// Questions of all conversations in one list.
import { useCallback, useEffect, useState } from "react";
import * as api from "./api";
import { ago, t } from "./i18n";
import { explain } from "./problems";
import type { StartProps } from "./products";
import { Ask } from "./question";
import { go } from "./route";
import { titleOf } from "./sidebar";

const EVERY_MS = 5_000;

interface Props { onChange: () => Promise<void>; onStarted: StartProps["onStarted"] }

export function Inbox({ onChange, onStarted }: Props) {
  const [threads, setThreads] = useState<api.Thread[] | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const load = useCallback(async () => {
    try {
      setThreads(await api.waiting());
    } catch (error) {
      setProblem(error);
    }
  }, []);
  useEffect(() => {
    const first = setTimeout(() => void load(), 0);
    const timer = setInterval(() => {
      if (!document.hidden) void load();
    }, EVERY_MS);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [load]);
  const answer = async (thread: api.Thread, given: unknown, words: string) => {
    try {
      await api.enqueue(thread.thread_id, String(thread.metadata.graph_id), {
        command: { resume: given }, metadata: { answer: words },
      });
      setThreads((old) => old?.filter((each) => each.thread_id !== thread.thread_id) ?? null);
      setProblem(null);
      await onChange();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <section className="inbox">
      <h1>{t("inbox")}</h1>
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      {threads?.length === 0 && <p className="empty">{t("noInbox")}</p>}
      {threads?.map((thread) => (
        <article key={thread.thread_id}>
          <header className="row">
            <h2 className="grow">{titleOf(thread)}</h2>
            <span className="meta">{ago(thread.updated_at)}</span>
            <button onClick={() => go({ thread: thread.thread_id, assistant: thread.metadata.graph_id as string })}>{t("open")}</button>
          </header>
          {Object.values(thread.interrupts ?? {}).flat().map((each) => (
            <Ask
              key={each.id} graph={String(thread.metadata.graph_id)} threadId={thread.thread_id}
              value={each.value} onStarted={onStarted} onAnswer={(given, words) => answer(thread, given, words)}
            />
          ))}
        </article>
      ))}
    </section>
  );
}
