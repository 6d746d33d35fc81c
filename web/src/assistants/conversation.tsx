// How a conversation with a graph that the page does not know goes on: its assistant, its context, what is shown.
import { useId, useRef, useState } from "react";
import * as api from "../api";
import { Drawer } from "../drawer";
import { explain } from "../problems";
import { focusProblem } from "../schema-form/form";
import { useWork } from "../use_work";
import { metadataOf, settingsOf } from "./client";
import { AssistantSettings, isStandard } from "./settings";
import { useChosen } from "./use-chosen";
import { useLoaded, type Loaded } from "./use-loaded";
import { w } from "./words";

interface Props {
  thread: api.Thread;
  graph: string;
  isReadOnly: boolean;
  hasTools: boolean;
  onTools: (areShown: boolean) => void;
}

/** The name of a conversation's assistant: a button that opens its settings. */
export default function ConversationSettings({ thread, graph, isReadOnly, hasTools, onTools }: Props) {
  const [isOpen, setOpen] = useState(false);
  const id = settingsOf(thread.metadata).assistant ?? graph;
  const [loaded, setLoaded] = useLoaded(graph, id);
  const found = loaded?.assistants.find((each) => each.assistant_id === id) ?? loaded?.assistants.find(isStandard);
  const name = found === undefined || isStandard(found) ? api.label(graph) : found.name;
  return (
    <>
      <button className="small" aria-haspopup="dialog" title={w("settings")} onClick={() => setOpen(true)}>
        <span className="clip">{name}</span>
        {settingsOf(thread.metadata).context !== undefined && <span className="badge">{w("changed")}</span>}
      </button>
      {isOpen && (
        <Drawer title={w("settings")} onClose={() => setOpen(false)}>
          <div className="stack">
            <label className="row">
              <input type="checkbox" checked={hasTools} onChange={(event) => onTools(event.target.checked)} />
              {w("tools")}
            </label>
            {loaded !== null && found !== undefined && !isReadOnly && (
              <Change key={id} thread={thread} assistant={found} loaded={loaded} onLoaded={setLoaded} onDone={() => setOpen(false)} />
            )}
          </div>
        </Drawer>
      )}
    </>
  );
}

interface ChangeProps {
  thread: api.Thread;
  assistant: api.Assistant;
  loaded: Loaded;
  onLoaded: (loaded: Loaded) => void;
  onDone: () => void;
}

/** Choose with what the next runs of a thread are started. */
function Change({ thread, assistant, loaded, onLoaded, onDone }: ChangeProps) {
  const { chosen, context, isWrong, settings } = useChosen(loaded, onLoaded, assistant, settingsOf(thread.metadata).context);
  const { isWorking, problem, act } = useWork();
  const box = useRef<HTMLDivElement>(null);
  const note = useId();
  if (settings.assistants.length < 2 && settings.schema === null) return null;
  const apply = async () => {
    if (isWrong()) {
      focusProblem(box.current);
      return;
    }
    await act(async () => {
      await api.describe(thread.thread_id, metadataOf({ assistant: chosen, context }));
      onDone();
    });
  };
  return (
    <div className="stack" ref={box}>
      <AssistantSettings {...settings} />
      {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
      <div className="row actions">
        <span className="meta" id={note}>{w("fromNow")}</span>
        <button className="primary" aria-describedby={note} disabled={isWorking} onClick={() => void apply()}>{w("use")}</button>
      </div>
    </div>
  );
}
