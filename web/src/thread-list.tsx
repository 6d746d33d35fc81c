// The list of threads. Its rows have one height, so that only those in view are rendered.
import { useEffect, useRef, useState } from "react";
import * as api from "./api";
import type { Thread } from "./api";
import { ago, t } from "./i18n";
import { Confirm, Menu } from "./menu";
import { explain } from "./problems";
import { go, type Place } from "./route";
import { graphOf, headingOf, isArchived, titleOf } from "./threads";
import { useUnseen } from "./use-unseen";

const ROW = 54;
const OVERSCAN = 8;

interface Props {
  threads: Thread[];
  place: Place;
  onOpen: () => void;
  onMore: (() => void) | undefined;
}

export function ThreadList({ threads, place, onOpen, onMore }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [rows, setRows] = useState({ start: 0, end: 30 });
  const unseen = useUnseen(threads, place.view === "chat" ? place.thread : null);
  useEffect(() => {
    const list = box.current;
    if (list === null) return;
    const look = () => {
      const start = Math.max(0, Math.floor(list.scrollTop / ROW) - OVERSCAN);
      const end = Math.ceil((list.scrollTop + list.clientHeight) / ROW) + OVERSCAN;
      setRows((old) => (old.start === start && old.end === end ? old : { start, end }));
    };
    const sizes = new ResizeObserver(look);
    sizes.observe(list);
    list.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      list.removeEventListener("scroll", look);
    };
  }, []);
  return (
    <div className="threads" ref={box}>
      <ul className="plain" style={{ height: threads.length * ROW }}>
        {threads.slice(rows.start, rows.end).map((each, i) => (
          <Row
            key={each.thread_id}
            thread={each}
            top={(rows.start + i) * ROW}
            isCurrent={place.view === "chat" && place.thread === each.thread_id}
            isUnseen={unseen.has(each.thread_id)}
            onOpen={onOpen}
          />
        ))}
      </ul>
      {onMore !== undefined && <button className="quiet small" onClick={onMore}>{t("loadMore")}</button>}
    </div>
  );
}

interface RowProps {
  thread: Thread;
  top: number;
  isCurrent: boolean;
  isUnseen: boolean;
  onOpen: () => void;
}

function Row({ thread, top, isCurrent, isUnseen, onOpen }: RowProps) {
  const [mode, setMode] = useState<"shown" | "rename" | "delete">("shown");
  const [problem, setProblem] = useState<unknown>(null);
  const act = async (work: Promise<unknown>) => {
    try {
      await work;
      setMode("shown");
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <li className={isCurrent ? "current" : undefined} style={{ top, height: ROW }}>
      {mode === "rename" ? (
        <Rename
          title={headingOf(thread).name}
          onSave={(title) => void act(api.describe(thread.thread_id, { title }))}
          onClose={() => setMode("shown")}
        />
      ) : (
        <div className="row">
          <Entry thread={thread} isCurrent={isCurrent} isUnseen={isUnseen} problem={problem} onOpen={onOpen} />
          <Menu className="more" label={`${t("options")}: ${titleOf(thread)}`}>
            <button onClick={() => setMode("rename")}>{t("rename")}</button>
            {thread.metadata.status !== "archived" && (
              <button onClick={() => void act(api.describe(thread.thread_id, { archived: !isArchived(thread) }))}>
                {isArchived(thread) ? t("unarchive") : t("archive")}
              </button>
            )}
            <button className="danger" onClick={() => setMode("delete")}>{t("delete")}</button>
          </Menu>
        </div>
      )}
      {mode === "delete" && (
        <Confirm
          question={`${titleOf(thread)}: ${t("reallyDelete")}`}
          action={t("delete")}
          onClose={() => setMode("shown")}
          onYes={() => void act(api.remove(thread.thread_id).then(() => isCurrent && go({}, true)))}
        />
      )}
    </li>
  );
}

interface EntryProps {
  thread: Thread;
  isCurrent: boolean;
  isUnseen: boolean;
  problem: unknown;
  onOpen: () => void;
}

function Entry({ thread, isCurrent, isUnseen, problem, onOpen }: EntryProps) {
  const graph = graphOf(thread);
  const { name, begun } = headingOf(thread);
  const status = thread.status === "interrupted" && !api.asks(thread) ? "idle" : thread.status;
  return (
    <button
      className="quiet entry grow"
      aria-current={isCurrent ? "page" : undefined}
      title={titleOf(thread)}
      onClick={() => {
        go({ thread: thread.thread_id, assistant: graph });
        onOpen();
      }}
    >
      <span className={isUnseen ? "clip unseen" : "clip"}>{name}</span>
      {problem === null ? (
        <span className="meta row">
          {status !== "idle" && <i className={`dot ${status}`} role="img" aria-label={t(status)} />}
          <span className="clip">
            {isUnseen && `${t("unseen")} · `}
            {isArchived(thread) && `${t("archived")} · `}
            {excerptOf(thread) ?? `${api.label(graph)} · ${begun === "" ? ago(thread.updated_at) : begun}`}
          </span>
        </span>
      ) : (
        <span className="meta clip" role="alert">{explain(problem)}</span>
      )}
    </button>
  );
}

/** Return what a thread says around the words that were looked for. */
function excerptOf(thread: Thread | api.Found): string | null {
  return "excerpt" in thread ? thread.excerpt : null;
}

interface RenameProps {
  title: string;
  onSave: (title: string) => void;
  onClose: () => void;
}

function Rename({ title, onSave, onClose }: RenameProps) {
  const [value, setValue] = useState(title);
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (value.trim() !== "") onSave(value.trim());
      }}
    >
      <input
        aria-label={t("rename")}
        autoFocus
        maxLength={120}
        value={value}
        onFocus={(event) => event.target.select()}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
        onChange={(event) => setValue(event.target.value)}
      />
      <button className="small">{t("save")}</button>
    </form>
  );
}
