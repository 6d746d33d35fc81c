// Code: the language's name, a button that copies, and colours when they are loaded.
import { memo, startTransition, useEffect, useRef, useState } from "react";
import { t } from "../i18n";
import type { Highlighting, Token } from "./highlight";

// Characters; longer code stays plain.
const LONGEST = 40_000;
// Milliseconds of work before the page may do something else.
const SLICE = 5;

let module: Promise<typeof import("./highlight")> | undefined;

/** Load what gives colours, once: each import looks for its file in the whole page. */
function colours(): Promise<typeof import("./highlight")> {
  return (module ??= import("./highlight"));
}

interface Props {
  text: string;
  language: string;
  /** Whether the last line may still grow. */
  growing?: boolean;
}

export function Code({ text, language, growing = false }: Props) {
  const lines = useLines(growing ? text : `${text}\n`, language);
  const done = lines.reduce((sum, line) => sum + line.text.length + 1, 0);
  return (
    <div className="code">
      <div className="row">
        <span className="meta grow" translate="no">{language}</span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} dir="ltr">
        <code translate="no">
          {lines.map((line, i) => <Line key={i} tokens={line.tokens} />)}
          {text.slice(done)}
        </code>
      </pre>
    </div>
  );
}

const Line = memo(function Line({ tokens }: { tokens: Token[] }) {
  return <>{tokens.map((each, i) => (each.kind === "" ? each.text : <span key={i} className={`tok-${each.kind}`}>{each.text}</span>))}{"\n"}</>;
});

/** Return the lines that have their colours: of a growing text, all but the last. */
function useLines(text: string, language: string): Highlighting["lines"] {
  const [lines, setLines] = useState<Highlighting["lines"]>([]);
  const known = useRef<Highlighting | null>(null);
  useEffect(() => {
    if (language === "" || text.length > LONGEST) return;
    let isGone = false;
    const work = async () => {
      const { highlighting } = await colours();
      if (known.current?.language !== language || !known.current.continues(text)) {
        known.current = await highlighting(language);
      }
      const found = known.current;
      // In a task of its own: many texts may wait for the same grammar.
      await new Promise((done) => setTimeout(done));
      while (!isGone && found !== null && !found.advance(text, performance.now() + SLICE)) {
        const now = [...found.lines];
        startTransition(() => setLines(now));
        await new Promise((done) => setTimeout(done));
      }
      if (isGone || found === null) return;
      const now = [...found.lines];
      startTransition(() => setLines(now));
    };
    void work();
    return () => {
      isGone = true;
    };
  }, [text, language]);
  // Lines of another text are not shown.
  let at = 0;
  for (const line of lines) {
    if (!text.startsWith(line.text, at)) return [];
    at += line.text.length + 1;
  }
  return at > text.length + 1 || text.length > LONGEST ? [] : lines;
}

export function CopyButton({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copied(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return <button type="button" className="quiet small" onClick={() => void copy()}>{isCopied ? t("copied") : t("copy")}</button>;
}

/** Put a text on the clipboard, and return whether it is there. */
async function copied(text: string): Promise<boolean> {
  // Pages without TLS have none, whatever the types say.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard !== undefined) {
    return clipboard.writeText(text).then(() => true, () => false);
  }
  const write = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", write);
  try {
    // The only way of such a page.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    return document.execCommand("copy");
  } finally {
    document.removeEventListener("copy", write);
  }
}
