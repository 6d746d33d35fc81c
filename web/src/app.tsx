// The shell: sign-in, sidebar, and the conversation or the inbox.
import { useCallback, useEffect, useState } from "react";
import * as api from "./api";
import { Conversation } from "./conversation";
import { language, languages, setLanguage, t, type Language } from "./i18n";
import { Inbox } from "./inbox";
import { explain } from "./problems";
import { go, usePlace } from "./route";
import { Sidebar } from "./sidebar";
import { SignIn } from "./signin";
import { Start } from "./start";

const HIDDEN = new Set(["enrichment"]);
const BUSY_MS = 3_000;
const IDLE_MS = 15_000;

export function App() {
  const place = usePlace();
  const [assistants, setAssistants] = useState<api.Assistant[] | null>(null);
  const [threads, setThreads] = useState<api.Thread[] | null>(null);
  const [waiting, setWaiting] = useState(0);
  const [needsToken, setNeedsToken] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const [archived, setArchived] = useState(false);
  const [menu, setMenu] = useState(false);
  const [lang, setLang] = useState<Language>(language());
  const [drafts, setDrafts] = useState<{ thread: string; text: string } | null>(null);

  const refresh = useCallback(async () => {
    try {
      const [found, open] = await Promise.all([api.threads(archived), api.waiting()]);
      setThreads(found);
      setWaiting(open.length);
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  }, [archived]);

  const load = useCallback(async () => {
    try {
      setAssistants((await api.assistants()).filter((each) => !HIDDEN.has(each.graph_id)));
      await refresh();
    } catch (error) {
      setProblem(error);
    }
  }, [refresh]);

  useEffect(() => {
    const out = () => setNeedsToken(true);
    api.signedOut.addEventListener("signedout", out);
    return () => api.signedOut.removeEventListener("signedout", out);
  }, []);

  useEffect(() => {
    if (needsToken) return;
    const start = setTimeout(() => void load(), 0);
    return () => clearTimeout(start);
  }, [load, needsToken]);

  const busy = threads?.some((each) => each.status === "busy") ?? false;
  useEffect(() => {
    if (needsToken) return;
    const timer = setInterval(() => {
      if (!document.hidden) void refresh();
    }, busy ? BUSY_MS : IDLE_MS);
    return () => clearInterval(timer);
  }, [busy, needsToken, refresh]);

  useEffect(() => {
    document.documentElement.lang = lang;
  }, [lang]);

  if (needsToken) {
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
  const started = (id: string, assistant: string, text: string) => {
    if (text !== "") setDrafts({ thread: id, text });
    go({ thread: id, assistant });
    void refresh();
  };
  const thread = threads?.find((each) => each.thread_id === place.thread);
  const graph = place.assistant ?? (thread?.metadata.graph_id as string | undefined) ?? null;
  return (
    <div className="shell" key={lang}>
      <a className="skip" href="#main">{t("skip")}</a>
      <Sidebar
        threads={threads}
        assistants={assistants ?? []}
        place={place}
        waiting={waiting}
        archived={archived}
        isOpen={menu}
        onArchived={setArchived}
        onChange={refresh}
        onClose={() => setMenu(false)}
        footer={
          <div className="row">
            <label className="grow">
              <span className="hidden">{t("language")}</span>
              <select
                value={lang}
                onChange={(event) => {
                  const chosen = event.target.value as Language;
                  setLanguage(chosen);
                  setLang(chosen);
                }}
              >
                {Object.entries(languages).map(([code, name]) => <option key={code} value={code}>{name}</option>)}
              </select>
            </label>
            {api.token() !== null && (
              <button
                className="quiet"
                onClick={() => {
                  api.signIn(null);
                  setThreads(null);
                  setNeedsToken(true);
                }}
              >
                {t("signOut")}
              </button>
            )}
          </div>
        }
      />
      <main id="main" tabIndex={-1}>
        <button className="quiet menu" aria-expanded={menu} onClick={() => setMenu(true)}>
          <span aria-hidden="true">☰</span> {t("menu")}
        </button>
        {problem !== null && (
          <p className="alert banner" role="alert">
            <span>{explain(problem)}</span>
            <button onClick={() => void load()}>{t("retry")}</button>
          </p>
        )}
        {place.view === "inbox" ? (
          <Inbox onChange={refresh} onStarted={started} />
        ) : place.thread !== null && graph !== null ? (
          <Conversation
            key={place.thread}
            threadId={place.thread}
            graph={graph}
            name={api.label(assistants?.find((each) => each.graph_id === graph)?.name ?? graph)}
            first={drafts?.thread === place.thread ? drafts.text : null}
            onFirst={() => setDrafts(null)}
            onChange={refresh}
            onStarted={started}
          />
        ) : place.thread !== null && threads === null ? (
          <p className="empty" role="status">{t("loading")}</p>
        ) : place.thread !== null ? (
          <p className="empty">{t("gone")}</p>
        ) : (
          <Start
            assistants={assistants}
            chosen={place.assistant}
            onStarted={started}
          />
        )}
      </main>
    </div>
  );
}
