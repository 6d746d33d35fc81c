// The shell: sign-in, sidebar, and the conversation, the inbox or the start.
import { Suspense, useCallback, useEffect, useState } from "react";
import * as api from "./api";
import { Conversation } from "./conversation";
import { keepDraft } from "./drafts";
import { language, languages, setLanguage, t, type Language } from "./i18n";
import { Icon } from "./icon";
import { newId } from "./ids";
import { Inbox } from "./inbox";
import { usePolling } from "./polling";
import { explain } from "./problems";
import { products } from "./products";
import { go, usePlace } from "./route";
import { Sidebar } from "./sidebar";
import { SignIn } from "./signin";
import { Start } from "./start";
import { graphOf, titleOf } from "./threads";

const HIDDEN = new Set(["enrichment"]);
const BUSY_MS = 3_000;
const IDLE_MS = 15_000;

export function App() {
  const [needsToken, setNeedsToken] = useState(false);
  useEffect(() => {
    const out = () => setNeedsToken(true);
    api.signedOut.addEventListener("signedout", out);
    return () => api.signedOut.removeEventListener("signedout", out);
  }, []);
  if (!needsToken) {
    return (
      <Shell
        onSignOut={() => {
          api.signIn(null);
          setNeedsToken(true);
        }}
      />
    );
  }
  return (
    <SignIn
      again={api.token() !== null}
      onToken={(value) => {
        api.signIn(value);
        setNeedsToken(false);
      }}
    />
  );
}

/** What the whole page needs of the server: assistants and threads. */
function useOverview(archived: boolean, limit: number) {
  const [assistants, setAssistants] = useState<api.Assistant[] | null>(null);
  const [threads, setThreads] = useState<api.Thread[] | null>(null);
  const [waiting, setWaiting] = useState(0);
  const [problem, setProblem] = useState<unknown>(null);
  const refresh = useCallback(async () => {
    try {
      const [found, open] = await Promise.all([api.threads(archived, limit), api.waiting()]);
      setThreads(found);
      setWaiting(open.length);
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, [archived, limit]);
  const load = useCallback(async () => {
    try {
      setAssistants((await api.assistants()).filter((each) => !HIDDEN.has(each.graph_id)));
      await refresh();
    } catch (error) {
      setProblem(error);
    }
  }, [refresh]);
  useEffect(() => {
    const start = setTimeout(() => void load(), 0);
    return () => clearTimeout(start);
  }, [load]);
  const isBusy = problem !== null || (threads?.some((each) => each.status === "busy") ?? false);
  usePolling(assistants === null ? load : refresh, isBusy ? BUSY_MS : IDLE_MS);
  return { assistants, threads, waiting, problem, refresh, load };
}

function Shell({ onSignOut }: { onSignOut: () => void }) {
  const place = usePlace();
  const [archived, setArchived] = useState(false);
  const [limit, setLimit] = useState(api.PAGE);
  const [isOpen, setOpen] = useState(false);
  const [lang, setLang] = useState<Language>(language());
  const { assistants, threads, waiting, problem, refresh, load } = useOverview(archived, limit);
  const thread = threads?.find((each) => each.thread_id === place.thread);
  const graph = place.assistant ?? (thread === undefined ? null : graphOf(thread));
  const Page = graph === null ? undefined : products[graph]?.Page;
  const title = place.view === "inbox" ? t("inbox") : thread === undefined ? null : titleOf(thread);
  useEffect(() => {
    document.documentElement.lang = lang;
    document.title = title === null ? "Threadhold" : `${title} · Threadhold`;
  }, [lang, title]);
  const begin = async (id: string, assistant: string, text: string) => {
    if (text !== "") {
      const message = { type: "human", content: text, id: newId() };
      // A text that the server refuses is in the box of the new conversation.
      await api.startRun(id, assistant, { messages: [message] }).catch(() => keepDraft(id, text));
    }
    go({ thread: id, assistant });
    void refresh();
  };
  return (
    <div className="shell" key={lang}>
      <a className="skip" href="#main">{t("skip")}</a>
      <Sidebar
        threads={threads}
        place={place}
        waiting={waiting}
        archived={archived}
        isOpen={isOpen}
        onArchived={setArchived}
        onChange={refresh}
        onClose={() => setOpen(false)}
        onMore={threads?.length === limit ? () => setLimit(limit + api.PAGE) : undefined}
        footer={<Footer lang={lang} onLanguage={setLang} onSignOut={onSignOut} />}
      />
      <main id="main" tabIndex={-1}>
        <div className="bar-top">
          <button
            className="icon quiet"
            aria-label={t("menu")}
            aria-expanded={isOpen}
            onClick={() => setOpen(true)}
          >
            <Icon name="menu" />
          </button>
          <strong className="clip grow">{title ?? "Threadhold"}</strong>
        </div>
        {problem !== null && (
          <p className="alert row banner" role="alert">
            <span>{explain(problem)}</span>
            <button className="small" onClick={() => void load()}>{t("retry")}</button>
          </p>
        )}
        {place.view === "inbox" ? (
          <Inbox onChange={refresh} onStarted={(...started) => void begin(...started)} />
        ) : place.thread === null ? (
          <Start assistants={assistants} chosen={place.assistant} onStarted={(...started) => void begin(...started)} />
        ) : Page !== undefined ? (
          <Suspense fallback={<p className="empty" role="status">{t("loading")}</p>}>
            <Page key={place.thread} threadId={place.thread} onChange={refresh} />
          </Suspense>
        ) : graph !== null && graph !== "" ? (
          <Conversation
            key={place.thread}
            threadId={place.thread}
            graph={graph}
            name={api.label(graph)}
            onChange={refresh}
            onStarted={(...started) => void begin(...started)}
          />
        ) : (
          <p className="empty" role="status">{t(threads === null ? "loading" : "gone")}</p>
        )}
      </main>
    </div>
  );
}

interface FooterProps {
  lang: Language;
  onLanguage: (chosen: Language) => void;
  onSignOut: () => void;
}

function Footer({ lang, onLanguage, onSignOut }: FooterProps) {
  return (
    <>
      <label className="grow">
        <span className="hidden">{t("language")}</span>
        <select
          className="small"
          value={lang}
          onChange={(event) => {
            const chosen = event.target.value as Language;
            setLanguage(chosen);
            onLanguage(chosen);
          }}
        >
          {Object.entries(languages).map(([code, name]) => <option key={code} value={code}>{name}</option>)}
        </select>
      </label>
      {api.token() !== null && <button className="quiet small" onClick={onSignOut}>{t("signOut")}</button>}
    </>
  );
}
