// The user's conversations of all assistants: search, rename, archive, delete.
import { useEffect, useState, type ReactNode } from "react";
import type { Assistant, Thread } from "./api";
import * as api from "./api";
import { ago, t } from "./i18n";
import { explain } from "./problems";
import { products } from "./products";
import { go, type Place } from "./route";

const PAGE = 60;

export function titleOf(thread: Thread): string {
  for (const key of ["title", "website", "rule_name"]) {
    const found = thread.metadata[key];
    if (typeof found === "string" && found.trim() !== "") return found;
  }
  return `${String(thread.metadata.graph_id ?? "")} ${thread.thread_id.slice(-4)}`.trim();
}

export function isArchived(thread: Thread): boolean {
  return thread.metadata.archived === true || thread.metadata.status === "archived";
}

/** Leave the conversation for a new one. */
function begin(): void {
  for (const each of Object.values(products)) each.onNew?.();
  go({});
}

interface Props {
  threads: Thread[] | null;
  assistants: Assistant[];
  place: Place;
  waiting: number;
  archived: boolean;
  isOpen: boolean;
  onArchived: (shown: boolean) => void;
  onChange: () => Promise<void>;
  onClose: () => void;
  footer: ReactNode;
}

export function Sidebar(props: Props) {
  const [query, setQuery] = useState("");
  const [count, setCount] = useState(PAGE);
  const { isOpen, onClose } = props;
  useEffect(() => {
    if (!isOpen) return;
    const close = (event: KeyboardEvent) => {
      if (event.key === "Escape") onClose();
    };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [isOpen, onClose]);
  const names = new Map(props.assistants.map((each) => [each.graph_id, each.name]));
  const wanted = query.trim().toLocaleLowerCase();
  const found = (props.threads ?? []).filter(
    (each) =>
      (props.archived || !isArchived(each)) &&
      each.metadata.graph_id !== "enrichment" &&
      titleOf(each).toLocaleLowerCase().includes(wanted),
  );
  return (
    <nav className={isOpen ? "sidebar open" : "sidebar"} aria-label={t("menu")}>
      <div className="row">
        <strong className="grow brand">Threadhold</strong>
        <button className="quiet closer" onClick={onClose}>{t("close")}</button>
      </div>
      <button className="primary" onClick={() => { begin(); onClose(); }}>{t("newThread")}</button>
      <button
        className="quiet entry" aria-current={props.place.view === "inbox" ? "page" : undefined}
        onClick={() => { go({ view: "inbox" }); onClose(); }}
      >
        <span className="grow">{t("inbox")}</span>
        {props.waiting > 0 && <span className="badge">{props.waiting}</span>}
      </button>
      <input
        type="search" aria-label={t("search")} placeholder={t("search")} value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      <ul
        className="threads"
        onScroll={(event) => {
          const list = event.currentTarget;
          if (list.scrollTop + list.clientHeight > list.scrollHeight - 400) setCount((n) => Math.min(n + PAGE, found.length + PAGE));
        }}
      >
        {found.slice(0, count).map((each) => (
          <Entry
            key={each.thread_id} thread={each} place={props.place} onChange={props.onChange} onOpen={onClose}
            name={api.label(names.get(each.metadata.graph_id as string) ?? String(each.metadata.graph_id ?? ""))}
          />
        ))}
      </ul>
      {props.threads !== null && found.length === 0 && (
        <p className="hint">{wanted === "" ? t("noThreads") : t("noMatch")}</p>
      )}
      <label className="row check">
        <input type="checkbox" checked={props.archived} onChange={(event) => props.onArchived(event.target.checked)} />
        {t("showArchived")}
      </label>
      {props.footer}
    </nav>
  );
}

interface EntryProps {
  thread: Thread;
  name: string;
  place: Place;
  onChange: () => Promise<void>;
  onOpen: () => void;
}

function Entry({ thread, name, place, onChange, onOpen }: EntryProps) {
  const [mode, setMode] = useState<"shown" | "options" | "rename" | "delete">("shown");
  const [title, setTitle] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const isCurrent = place.view === "chat" && place.thread === thread.thread_id;
  const act = async (work: Promise<unknown>) => {
    try {
      await work;
      setMode("shown");
      setProblem(null);
      await onChange();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <li className={isCurrent ? "current" : undefined}>
      {mode === "rename" ? (
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            if (title.trim() !== "") void act(api.describe(thread.thread_id, { title: title.trim() }));
          }}
        >
          <input aria-label={t("rename")} autoFocus value={title} maxLength={120}
            onKeyDown={(event) => event.key === "Escape" && setMode("shown")}
            onChange={(event) => setTitle(event.target.value)} />
          <button>{t("save")}</button>
        </form>
      ) : (
        <div className="row">
          <button
            className="quiet entry grow" aria-current={isCurrent ? "page" : undefined}
            onClick={() => {
              go({ thread: thread.thread_id, assistant: thread.metadata.graph_id as string });
              onOpen();
            }}
          >
            <span className="title">{titleOf(thread)}</span>
            <span className="meta">
              {(thread.status === "busy" || thread.status === "error" || api.asks(thread)) && <i className={`dot ${thread.status}`} role="img" aria-label={thread.status} />}
              {name} · {ago(thread.updated_at)}
            </span>
          </button>
          <button
            className="quiet more" aria-label={`${t("options")}: ${titleOf(thread)}`} aria-expanded={mode === "options"}
            onClick={() => setMode(mode === "options" ? "shown" : "options")}
          >
            <span aria-hidden="true">⋯</span>
          </button>
        </div>
      )}
      {mode === "options" && (
        <div className="row actions">
          <button onClick={() => { setTitle(titleOf(thread)); setMode("rename"); }}>{t("rename")}</button>
          {thread.metadata.status !== "archived" && (
            <button onClick={() => void act(api.describe(thread.thread_id, { archived: !isArchived(thread) }))}>
              {isArchived(thread) ? t("unarchive") : t("archive")}
            </button>
          )}
          <button className="danger" onClick={() => setMode("delete")}>{t("delete")}</button>
        </div>
      )}
      {mode === "delete" && (
        <div className="confirm" role="alertdialog" aria-label={t("delete")}>
          <p>{t("reallyDelete")}</p>
          <div className="row actions">
            <button autoFocus onClick={() => setMode("shown")}>{t("cancel")}</button>
            <button
              className="danger"
              onClick={() => void act(api.remove(thread.thread_id).then(() => isCurrent && go({}, true)))}
            >
              {t("delete")}
            </button>
          </div>
        </div>
      )}
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
    </li>
  );
}
