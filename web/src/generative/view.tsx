// Components of a graph, each in a frame with an origin of its own.
import { useEffect, useRef, useState } from "react";
import { Fold } from "../fold";
import { wordsOf } from "../i18n";
import { Tree } from "../state/tree";
import { filesOf, type Files } from "./client";
import frame from "./frame?worker&url";
import type { UiMessage } from "./messages";
import type { FromFrame, Show } from "./protocol";

const w = wordsOf(
  { component: "Component", unknown: "This component cannot be shown here.", contents: "Its contents" },
  { component: "Componente", unknown: "Este componente não pode ser mostrado aqui.", contents: "O seu conteúdo" },
);

const TALLEST = 1_200;
// A component that comes into the view again has its height at once, so that the conversation does not move.
const heights = new Map<string, number>();

interface Props {
  graph: string;
  messages: UiMessage[];
  /** Send a message as if the person had typed it. */
  onSubmit: (text: string) => void;
}

export default function UiMessages({ graph, messages, onSubmit }: Props) {
  const [files, setFiles] = useState<Files | null | undefined>(undefined);
  useEffect(() => {
    let isHere = true;
    void filesOf(graph).catch(() => null).then((found) => isHere && setFiles(found));
    return () => {
      isHere = false;
    };
  }, [graph]);
  if (files === undefined) return null;
  return messages.map((each) =>
    files === null
      ? <Unknown key={each.id} message={each} />
      : <Framed key={each.id} message={each} files={files} onSubmit={onSubmit} />,
  );
}

function Unknown({ message: { name, props } }: { message: UiMessage }) {
  return (
    <section className="card stack tight" aria-label={`${w("component")}: ${name}`}>
      <p className="hint"><code>{name}</code> {w("unknown")}</p>
      {Object.keys(props).length > 0 && (
        <Fold summary={<summary className="meta">{w("contents")}</summary>}><Tree value={props} /></Fold>
      )}
    </section>
  );
}

/** The document of a frame. Its policy is that of the page: scripts of this server only, and no inline ones. */
const document_ = (script: string) =>
  `<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body style="margin:0;font:15px/1.6 system-ui,sans-serif;overflow:hidden"><script src="${script}"></script>`;

function Framed({ message, files, onSubmit }: { message: UiMessage; files: Files; onSubmit: (text: string) => void }) {
  const box = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(heights.get(message.id) ?? 0);
  const [isReady, setReady] = useState(false);
  const [isBroken, setBroken] = useState(false);
  const submit = useRef(onSubmit);
  useEffect(() => {
    submit.current = onSubmit;
  }, [onSubmit]);
  useEffect(() => {
    const hear = (event: MessageEvent<FromFrame>) => {
      if (event.source !== box.current?.contentWindow) return;
      const said = event.data;
      if (said.type === "ready") setReady(true);
      else if (said.type === "failed") setBroken(true);
      else if (said.type === "height") setHeight(Math.min(Number(said.height) || 0, TALLEST));
      // Only after a click or key in the frame: a component sends nothing by itself.
      else if (navigator.userActivation.isActive) submit.current(String(said.text).slice(0, 10_000));
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, []);
  const { id, name, props } = message;
  useEffect(() => {
    if (height > 0) heights.set(id, height);
  }, [height, id]);
  useEffect(() => {
    if (!isReady) return;
    box.current?.contentWindow?.postMessage({ type: "show", ...files, name, props } satisfies Show, "*");
  }, [files, isReady, name, props]);
  if (isBroken) return <Unknown message={message} />;
  return (
    <iframe
      ref={box}
      title={`${w("component")}: ${name}`}
      sandbox="allow-scripts"
      srcDoc={document_(new URL(frame, location.href).href)}
      style={{ width: "100%", height, border: "none", colorScheme: "light dark" }}
    />
  );
}
