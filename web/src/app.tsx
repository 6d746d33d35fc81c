// The shell: sign-in, sidebar, and the conversation, the inbox or the start.
import { lazy, Suspense, useEffect, useState } from "react";
import * as api from "./api";
import { Boundary } from "./boundary";
import { keepDraft, moveDraft } from "./drafts";
import { hand } from "./handed";
import { language, languages, setLanguage, t, type Language } from "./i18n";
import { Icon } from "./icon";
import { newHiddenId, newId } from "./ids";
import { preloaded } from "./preloaded";
import { explain } from "./problems";
import { products } from "./products";
import { format, go, usePlace } from "./route";
import { Sidebar } from "./sidebar";
import { SignIn } from "./signin";
import { Start } from "./start";
import { askTabs, shareToken, signIn, token } from "./token";
import { graphOf, titleOf } from "./threads";
import { Title } from "./title";
import { useCaller, useThread, useThreads } from "./use-threads";

// The start shows neither. A page where a conversation can begin loads it before it is needed.
const { Preloaded: Conversation, preload: conversation } = preloaded(async () => (await import("./conversation")).Conversation);
const Inbox = lazy(async () => ({ default: (await import("./inbox")).Inbox }));

export function App() {
  const [needsToken, setNeedsToken] = useState(false);
  useEffect(() => {
    const ask = async () => {
      // Another tab may have one. One that was refused comes from the person.
      const known = token() === null ? await askTabs(api.apiUrl) : null;
      if (known === null) setNeedsToken(true);
      else {
        signIn(known);
        location.reload();
      }
    };
    const out = () => void ask();
    const end = shareToken(api.apiUrl);
    api.signedOut.addEventListener("signedout", out);
    return () => {
      end();
      api.signedOut.removeEventListener("signedout", out);
    };
  }, []);
  if (!needsToken) {
    return (
      <Boundary>
        <Shell
          onSignOut={() => {
            signIn(null);
            setNeedsToken(true);
          }}
        />
      </Boundary>
    );
  }
  return (
    <SignIn
      again={token() !== null}
      onToken={(value) => {
        signIn(value);
        setNeedsToken(false);
      }}
    />
  );
}

function Shell({ onSignOut }: { onSignOut: () => void }) {
  const place = usePlace();
  const [archived, setArchived] = useState(false);
  const [limit, setLimit] = useState(api.PAGE);
  const [isOpen, setOpen] = useState(false);
  const [lang, setLang] = useState<Language>(language());
  const { assistants, threads, waiting, problem, retry } = useThreads(archived, limit);
  const caller = useCaller();
  const { thread, trouble } = useThread(place.thread, threads);
  const graph = place.assistant ?? (thread === undefined ? null : graphOf(thread));
  const Page = graph === null ? undefined : products[graph]?.Page;
  const title = place.view === "inbox" ? t("inbox") : thread === undefined ? null : titleOf(thread);
  useEffect(() => {
    document.documentElement.lang = lang;
    document.title = title === null ? "Threadhold" : `${title} · Threadhold`;
  }, [lang, title]);
  useEffect(() => {
    if (place.assistant !== null) void conversation();
  }, [place.assistant]);
  const begin = async (id: string, assistant: string, text: string, isHidden = false) => {
    if (text !== "") {
      const message = { type: "human", content: text, id: isHidden ? newHiddenId() : newId() };
      const keep = () => !isHidden && keepDraft(id, text);
      // A text that the server refuses is in the box of the new conversation.
      await api.startRun(id, assistant, { messages: [message] }).then((run) => hand(id, message, run.run_id), keep);
    }
    await conversation();
    moveDraft(`new:${assistant}`, id);
    go({ thread: id, assistant });
  };
  return (
    <div className="shell" key={lang}>
      <a className="skip" href="#main">{t("skip")}</a>
      <Sidebar
        threads={threads}
        place={place}
        waiting={waiting?.length ?? 0}
        archived={archived}
        isOpen={isOpen}
        onArchived={setArchived}
        onClose={() => setOpen(false)}
        onMore={threads?.length === limit ? () => setLimit(limit + api.PAGE) : undefined}
        footer={<Footer caller={caller} lang={lang} onLanguage={setLang} onSignOut={onSignOut} />}
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
          <strong className="clip grow">
            {thread !== undefined && place.view !== "inbox" ? <Title of={thread} /> : (title ?? "Threadhold")}
          </strong>
        </div>
        {problem !== null && (
          <p className="alert row banner" role="alert">
            <span>{explain(problem)}</span>
            <button className="small" onClick={retry}>{t("retry")}</button>
          </p>
        )}
        <Boundary key={format(place)}>
          <Suspense fallback={<p className="empty" role="status">{t("loading")}</p>}>
            {place.view === "inbox" ? (
              <Inbox threads={waiting} onStarted={(...started) => void begin(...started)} />
            ) : place.thread === null ? (
              <Start assistants={assistants} chosen={place.assistant} onStarted={(...started) => void begin(...started)} />
            ) : Page !== undefined ? (
              <Page key={place.thread} threadId={place.thread} />
            ) : graph !== null && graph !== "" ? (
              <Conversation
                key={place.thread}
                threadId={place.thread}
                graph={graph}
                name={api.label(graph)}
                onStarted={(...started) => void begin(...started)}
              />
            ) : (
              <Nowhere trouble={trouble} />
            )}
          </Suspense>
        </Boundary>
      </main>
    </div>
  );
}

/** Say why a conversation is not shown, and what helps. */
function Nowhere({ trouble }: { trouble: unknown }) {
  if (trouble === null) return <p className="empty" role="status">{t("loading")}</p>;
  return (
    <div className="empty stack" role="alert">
      <p>{explain(trouble)}</p>
      <p><button onClick={() => go({})}>{t("newThread")}</button></p>
    </div>
  );
}

interface FooterProps {
  caller: api.Caller | null;
  lang: Language;
  onLanguage: (chosen: Language) => void;
  onSignOut: () => void;
}

function Footer({ caller, lang, onLanguage, onSignOut }: FooterProps) {
  return (
    <>
      {caller?.identity != null && (
        <span className="meta clip who" title={caller.identity}>
          {caller.display_name ?? caller.identity}
          {caller.tenant !== null && ` · ${caller.tenant}`}
        </span>
      )}
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
      {token() !== null && <button className="quiet small" onClick={onSignOut}>{t("signOut")}</button>}
    </>
  );
}
