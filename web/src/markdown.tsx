// Markdown of a model: no raw HTML, images of this origin only, links to https and mailto only.
import { Lexer } from "marked";
import { memo, useMemo } from "react";
import Markdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";

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
  img: ({ src, alt }) => (typeof src === "string" && src ? <img src={src} alt={alt ?? ""} /> : <em>{alt}</em>),
  table: ({ children }) => <div className="scroll" tabIndex={0}><table>{children}</table></div>,
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
};

/** Return the plugins for a block that begins at an offset of the text. */
export type Plugins = (base: number) => NonNullable<Options["rehypePlugins"]>;

interface BlockProps { text: string; base: number; plugins: Plugins | undefined }

const Block = memo(function Block({ text, base, plugins }: BlockProps) {
  return (
    <Markdown
      skipHtml
      remarkPlugins={[remarkGfm]}
      rehypePlugins={plugins?.(base) ?? []}
      components={components}
      urlTransform={(url, key) => (key === "src" ? safeImage(url) : safeLink(url))}
    >
      {text}
    </Markdown>
  );
});

interface TextProps { text: string; growing: boolean; plugins?: Plugins }

/** Show Markdown. Only the last block of a growing text is rendered again. */
export const Text = memo(function Text({ text, growing, plugins }: TextProps) {
  const blocks = useMemo(() => {
    let end = 0;
    return Lexer.lex(growing ? remend(text) : text).map(({ raw }) => {
      end += raw.length;
      return { raw, base: end - raw.length };
    });
  }, [text, growing]);
  return (
    <div className="prose">
      {blocks.map(({ raw, base }, i) => <Block key={i} text={raw} base={base} plugins={plugins} />)}
    </div>
  );
});
