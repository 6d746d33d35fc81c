// The user's conversations of all assistants.
import { useRef, useState, type ReactNode } from "react";
import type { Thread } from "./api";
import { t } from "./i18n";
import { Icon } from "./icon";
import { useOverlay } from "./overlay";
import { products } from "./products";
import { go, type Place } from "./route";
import { ThemeChoice } from "./theme";
import { ThreadList } from "./thread-list";
import { graphOf, isArchived, titleOf } from "./threads";
import { useFound } from "./use-found";

interface Props {
  threads: Thread[] | null;
  place: Place;
  /** How many threads wait for an answer. */
  waiting: number;
  archived: boolean;
  isOpen: boolean;
  onArchived: (shown: boolean) => void;
  onClose: () => void;
  /** Load older threads, if there may be any. */
  onMore: (() => void) | undefined;
  footer: ReactNode;
}

export function Sidebar(props: Props) {
  const { isOpen, onClose, place } = props;
  const [query, setQuery] = useState("");
  const box = useRef<HTMLElement>(null);
  useOverlay(box, isOpen, onClose);
  const wanted = query.trim().toLocaleLowerCase();
  const { found: said, isLooking } = useFound(query);
  const isOwn = (each: Thread) => graphOf(each) !== "enrichment";
  const isShown = (each: Thread) => (props.archived || !isArchived(each)) && isOwn(each);
  const hasOthers = props.threads?.some(isOwn) === true;
  const titled = (props.threads ?? []).filter((each) => isShown(each) && titleOf(each).toLocaleLowerCase().includes(wanted));
  const known = new Set(titled.map((each) => each.thread_id));
  const found = [...titled, ...said.filter((each) => isShown(each) && !known.has(each.thread_id))];
  const move = (where: Partial<Place>) => {
    go(where);
    onClose();
  };
  return (
    <nav ref={box} className={isOpen ? "sidebar open" : "sidebar"} aria-label={t("menu")}>
      <div className="row">
        <strong className="brand grow"><Icon name="logo" size={22} />Threadhold</strong>
        <button className="icon quiet closer" aria-label={t("close")} onClick={onClose}><Icon name="close" /></button>
      </div>
      <button
        className="entry"
        onClick={() => {
          for (const each of Object.values(products)) each.onNew?.();
          move({});
        }}
      >
        <Icon name="plus" />
        <span className="grow">{t("newThread")}</span>
      </button>
      <button
        className="entry"
        aria-current={place.view === "inbox" ? "page" : undefined}
        onClick={() => move({ view: "inbox" })}
      >
        <Icon name="inbox" />
        <span className="grow">{t("inbox")}</span>
        {props.waiting > 0 && <span className="badge accent">{props.waiting}</span>}
      </button>
      <div className="search">
        <Icon name="search" size={16} />
        <input
          type="search"
          aria-label={t("search")}
          placeholder={t("search")}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </div>
      {props.threads !== null && found.length === 0 && (
        <p className="hint" role="status">{t(wanted !== "" ? (isLooking ? "looking" : "noMatch") : hasOthers ? "noneShown" : "noThreads")}</p>
      )}
      <ThreadList threads={found} place={place} onOpen={onClose} onMore={props.onMore} />
      <label className="row check">
        <input
          type="checkbox"
          checked={props.archived}
          onChange={(event) => props.onArchived(event.target.checked)}
        />
        {t("showArchived")}
      </label>
      <div className="row foot">{props.footer}<ThemeChoice /></div>
    </nav>
  );
}
