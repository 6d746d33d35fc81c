// The chat as a component: one assistant, without the list of conversations.
import { lazy, Suspense, useEffect, useState } from "react";
import * as api from "./api";
import { Composer } from "./composer";
import { t } from "./i18n";
import { newHiddenId, newId } from "./ids";
import { titled } from "./threads";
import { explain } from "./problems";
import { setEmbedder } from "./route";
import { signIn } from "./token";

const conversation = () => import("./conversation");
const Conversation = lazy(async () => ({ default: (await conversation()).Conversation }));

interface Props {
  /** Name of the graph. */
  assistant: string;
  /** Address of the server; by default that of the page. */
  server?: string;
  /** Token of the user, if the server asks for one. */
  token?: string;
  /** A conversation to go on with; by default the one of this tab, or a new one. */
  thread?: string;
}

const KEY = "threadhold-embedded";

/** Show the chat with an assistant. The conversation survives a reload of the page. */
export function Threadhold({ assistant, server, token, thread: given }: Props) {
  const place = `${KEY}:${assistant}`;
  const [thread, setThread] = useState<string | null>(() => given ?? sessionStorage.getItem(place));
  const [problem, setProblem] = useState<unknown>(null);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    if (server !== undefined) api.setServer(server);
    if (token !== undefined) signIn(token);
    setEmbedder(({ thread: next }) => setThread(next ?? null));
    void conversation();
    const start = setTimeout(() => setReady(true), 0);
    return () => {
      clearTimeout(start);
      setEmbedder(null);
    };
  }, [server, token]);
  /** Open a conversation, and send a text in it unless it is empty. */
  const open = async (id: string, text: string, isHidden = false): Promise<void> => {
    const message = { type: "human", content: text, id: isHidden ? newHiddenId() : newId() };
    if (text !== "") await api.startRun(id, assistant, { messages: [message] });
    sessionStorage.setItem(place, id);
    setThread(id);
  };
  const begin = async (text: string): Promise<boolean> => {
    try {
      const made = await api.createThread(newId(), assistant, titled(text));
      await open(made.thread_id, text);
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    }
  };
  if (!isReady) return null;
  if (thread !== null) {
    return (
      <Suspense fallback={<p className="empty" role="status">{t("loading")}</p>}>
        <Conversation
          key={thread}
          threadId={thread}
          graph={assistant}
          name={api.label(assistant)}
          onStarted={(id, _, text, isHidden) => void open(id, text, isHidden).catch(setProblem)}
        />
      </Suspense>
    );
  }
  return (
    <section className="conversation" aria-label={api.label(assistant)}>
      <p className="empty">{t("empty")}</p>
      <div className="below">
        {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
        <Composer place={place} onSend={begin} />
      </div>
    </section>
  );
}
