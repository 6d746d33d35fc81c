// What the session has to read: each source with its measures, and its text.
import { useRef, useState } from "react";
import { Drawer } from "../../drawer";
import { Icon } from "../../icon";
import type { ViewProps } from "../props";
import type { Source, State } from "./client";
import { Look, Underway } from "./given";
import { measures } from "./measures";
import { SourceText } from "./source-text";
import * as uploads from "./uploads";
import { w } from "./words";

interface Props {
  view: ViewProps;
  state: State;
  /** The last event that the assistant has answered: what came after it is not read yet. */
  answered: number;
  /** Whether the state is that of now. */
  isNow: boolean;
}

/** Return the sources, the newest first. */
export function listed(state: State): [string, Source][] {
  return Object.entries(state.sources).sort(([, a], [, b]) => b.seq - a.seq);
}

export function Sources({ view, state, answered, isNow }: Props) {
  const [open, setOpen] = useState<string | null>(null);
  const found = listed(state);
  const unread = isNow && !view.isBusy ? found.filter(([, each]) => each.seq > answered) : [];
  const source = open === null ? undefined : state.sources[open];
  return (
    <>
      {isNow && !view.readOnly && <Add thread={view.threadId} />}
      <Underway thread={view.threadId} />
      {unread.length > 0 && !view.readOnly && (
        <div className="notice row wrap unread">
          <span className="grow">{w("unreadYet")}</span>
          <Look names={unread.map(([, each]) => each.name)} say={view.say} />
        </div>
      )}
      {found.length === 0 && <p className="hint">{w("noSources")}</p>}
      <ul className="plain rows sources" aria-label={w("sources")}>
        {found.map(([id, each]) => (
          <li key={id}>
            <button className="quiet source" onClick={() => setOpen(id)}>
              <span className="row">
                <span className="clip name">{each.name || w("unnamed")}</span>
                {unread.some(([known]) => known === id) && <span className="badge accent">{w("unread")}</span>}
              </span>
              <span className="meta">{measures(each)}</span>
            </button>
          </li>
        ))}
      </ul>
      {open !== null && source !== undefined && (
        <Drawer title={source.name || w("unnamed")} onClose={() => setOpen(null)}>
          <p className="meta">{measures(source)}</p>
          <SourceText id={view.threadId} source={open} chars={source.chars} />
        </Drawer>
      )}
    </>
  );
}

function Add({ thread }: { thread: string }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div className="row wrap">
      <button className="small" onClick={() => input.current?.click()}><Icon name="attach" size={14} />{w("add")}</button>
      <span className="meta">{w("orDrop")}</span>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={w("add")}
        onChange={(event) => {
          uploads.add(thread, [...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </div>
  );
}
