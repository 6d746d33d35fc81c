// Markdown of a model: no raw HTML, images of this origin only, links to https and mailto only.
import { Lexer } from "marked";
import { memo, useEffect, useMemo, useRef, useState } from "react";
import Markdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import { t } from "./i18n";

export function safeLink(url: string): string {
  return /^(https:\/\/|mailto:)/i.test(url) ? url : "";
}

export function safeImage(url: string): string {
  try {
    return new URL(url, location.origin).origin === location.origin && !/^data:/i.test(url) ? url : "";
  } catch {
    return "";
  }
}

const components: Components = {
  a: ({ href, children }) =>
    href ? <a href={href} target="_blank" rel="noopener noreferrer">{children}</a> : <span>{children}</span>,
  img: ({ src, alt }) =>
    typeof src === "string" && src ? <img src={src} alt={alt ?? ""} loading="lazy" /> : <em>{alt}</em>,
  table: ({ children }) => <div className="scroll" tabIndex={0}><table>{children}</table></div>,
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
};

const FENCE = /^ {0,3}(`{3,}|~{3,})[^\n]*\n([\s\S]*?)(?:\n {0,3}\1[`~]*\s*)?$/;

/** What a product adds to blocks of a text. */
export interface Plugins {
  /** Return whether a block that begins at an offset of the text gets anything. Others are not rendered again. */
  concern: (block: string, base: number) => boolean;
  of: (base: number) => NonNullable<Options["rehypePlugins"]>;
}

interface BlockProps {
  text: string;
  /** Where the block begins in the whole text. */
  base: number;
  plugins: Plugins | undefined;
}

const Block = memo(function Block({ text, base, plugins }: BlockProps) {
  const code = FENCE.exec(text)?.[2];
  // Code is the block that grows longest, and needs no parser.
  if (code !== undefined) return <Code text={code} />;
  return (
    <Markdown
      skipHtml
      remarkPlugins={[remarkGfm]}
      rehypePlugins={plugins?.of(base) ?? []}
      components={components}
      urlTransform={(url, key) => (key === "src" ? safeImage(url) : safeLink(url))}
    >
      {text}
    </Markdown>
  );
});

function Code({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <div className="code">
      <pre tabIndex={0}><code>{text}</code></pre>
      <button className="quiet small" onClick={() => void copy()}>{isCopied ? t("copied") : t("copy")}</button>
    </div>
  );
}

interface Cut {
  text: string;
  blocks: string[];
}

/**
 * Cut a text into blocks. Of a text that has grown since `old`, only the end is cut again: what
 * follows can change the last block, and what looks like the one before it, but no earlier ones.
 */
export function cut(text: string, old: Cut | null): Cut {
  const early = old?.blocks.slice(0, -2) ?? [];
  const begin = early.join("");
  // `marked` leaves out some spaces at the end of lists. Then all is cut again.
  const known = text.startsWith(begin) ? early : [];
  const rest = known.length > 0 ? text.slice(begin.length) : text;
  return { text, blocks: [...known, ...Lexer.lex(rest).map((token) => token.raw)] };
}

interface TextProps {
  text: string;
  growing: boolean;
  plugins?: Plugins | undefined;
}

/** Return a text; while it grows, the text of the last frame, however many tokens arrive in it. */
function useDrawn(text: string, growing: boolean): string {
  const [drawn, setDrawn] = useState(text);
  useEffect(() => {
    if (!growing) return;
    const frame = requestAnimationFrame(() => setDrawn(text));
    return () => cancelAnimationFrame(frame);
  }, [growing, text]);
  return growing ? drawn : text;
}

/** Show Markdown. Only the last blocks of a growing text are rendered again, once a frame. */
export const Text = memo(function Text({ text: whole, growing, plugins }: TextProps) {
  const text = useDrawn(whole, growing);
  const last = useRef<Cut | null>(null);
  const blocks = useMemo(() => {
    // Blocks are found by their exact text, which `marked` changes if lines end with a return.
    last.current = cut(text.replaceAll("\r\n", "\n").replaceAll("\r", "\n"), last.current);
    let end = 0;
    return last.current.blocks.map((raw) => {
      end += raw.length;
      return { raw, base: end - raw.length };
    });
  }, [text]);
  return (
    <div className="prose">
      {blocks.map(({ raw, base }, i) => {
        if (raw.trim() === "") return null;
        // What is open at the end, such as bold words, is closed while the text grows.
        const isOpen = growing && i >= blocks.length - 2;
        const own = plugins?.concern(raw, base) ? plugins : undefined;
        return <Block key={i} text={isOpen ? remend(raw) : raw} base={base} plugins={own} />;
      })}
    </div>
  );
});
