// Markdown as it streams: of a growing text only the last blocks are read again, and a long one is drawn in parts.
import type { Element as Node, ElementContent } from "hast";
import {
  lazy, memo, Suspense, useEffect, useMemo, useRef, useState, type MouseEvent, type ReactNode,
} from "react";
import Markdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import type { Plugins, TextProps } from "./props";
import { Code } from "./code";
import { cut, fence, formula, isNote, notesOf, type Cut } from "./cut";
import { External } from "./external";
import { safeHtml, words } from "./html";
import { safeImage, safeLink, slug } from "./links";
import { mask, unmask } from "./math";
import { w } from "./words";

const Formula = lazy(() => import("./formula"));
const Diagram = lazy(() => import("./diagram"));

const heading = (Tag: "h1" | "h2" | "h3" | "h4" | "h5" | "h6") =>
  function Heading({ node, children }: { node?: Node | undefined; children?: ReactNode }) {
    return <Tag dir="auto" data-fragment={slug(node === undefined ? "" : words(node))}>{children}</Tag>;
  };

function Inline({ node, display }: { node?: Node | undefined; display: boolean }) {
  const source = node === undefined ? "" : words(node);
  return <Suspense fallback={<code>{source}</code>}><Formula source={source} display={display} /></Suspense>;
}

const components = {
  a: ({ node, href, children }) =>
    href?.startsWith("#") === true ? (
      <a href={href} data-fragment={node?.properties.dataFragment as string | undefined}>{children}</a>
    ) : href ? (
      <a href={href} target="_blank" rel="noopener noreferrer">{children}</a>
    ) : (
      <span>{children}</span>
    ),
  // Read before `urlTransform` empties it.
  img: ({ node, src, alt }) => {
    const wanted = node?.properties.dataSource;
    return typeof src === "string" && src ? (
      <img src={src} alt={alt ?? ""} loading="lazy" />
    ) : typeof wanted === "string" ? (
      <External url={wanted} name={alt ?? ""} />
    ) : (
      <em>{alt}</em>
    );
  },
  table: ({ children }) => <div className="scroll" tabIndex={0}><table dir="auto">{children}</table></div>,
  // Fences inside of lists and quotes; others are read without the parser.
  pre: ({ node }) => {
    const code = node?.children[0];
    if (code?.type !== "element") return null;
    const name = [code.properties.className].flat().map(String).find((each) => each.startsWith("language-"));
    return <Code text={words(code)} language={(name ?? "").slice("language-".length)} />;
  },
  input: ({ checked }) => (
    <input type="checkbox" checked={checked === true} disabled readOnly aria-label={w(checked === true ? "checked" : "unchecked")} />
  ),
  h1: heading("h1"), h2: heading("h2"), h3: heading("h3"), h4: heading("h4"), h5: heading("h5"), h6: heading("h6"),
  "math-inline": ({ node }: { node?: Node }) => <Inline node={node} display={false} />,
  "math-block": ({ node }: { node?: Node }) => <Inline node={node} display />,
} as Components;

const toHast: NonNullable<Options["remarkRehypeOptions"]> = {
  handlers: {
    // The definition holds the number; the text is below all blocks.
    footnoteReference: (state, node: { identifier: string }): ElementContent => {
      const definition = state.footnoteById.get(node.identifier.toUpperCase())?.children[0];
      const said = definition?.type === "paragraph" ? definition.children[0] : undefined;
      const number = said?.type === "text" ? said.value : "";
      const properties = { href: `#note-${number}`, dataFragment: `reference-${number}` };
      return {
        type: "element", tagName: "sup", properties: {},
        children: [{ type: "element", tagName: "a", properties, children: [{ type: "text", value: number }] }],
      };
    },
  },
};

/** Keep the address of an image that is not shown. */
function keepSources() {
  const walk = (node: Node): void => {
    if (node.tagName === "img") node.properties.dataSource = node.properties.src;
    for (const each of node.children) if (each.type === "element") walk(each);
  };
  return (tree: { children: unknown[] }) => {
    for (const each of tree.children as ElementContent[]) if (each.type === "element") walk(each);
  };
}

interface BlockProps {
  text: string;
  /** Where the block begins in the whole text. */
  base: number;
  /** Definitions of other blocks that this one refers to. */
  definitions: string;
  plugins: Plugins | undefined;
}

const Block = memo(function Block({ text, base, definitions, plugins }: BlockProps) {
  const code = fence(text);
  // Code is the block that grows longest, and needs no parser.
  if (code !== null) {
    const plain = <Code text={code.code.replace(/\n$/, "")} language={code.language} growing={!code.isClosed} />;
    // A diagram that still grows is none.
    if (code.language !== "mermaid" || !code.isClosed) return plain;
    return <Suspense fallback={plain}><Diagram source={code.code} name={w("diagram")} /></Suspense>;
  }
  const alone = formula(text);
  if (alone !== null) {
    return <Suspense fallback={<code>{alone}</code>}><Formula source={alone} display /></Suspense>;
  }
  const masked = mask(text);
  return (
    <Markdown
      remarkPlugins={[remarkGfm]}
      remarkRehypeOptions={toHast}
      rehypePlugins={[...(plugins?.of(base) ?? []), unmask(masked.formulas), safeHtml, keepSources]}
      components={components}
      urlTransform={(url, key) => (key === "src" ? safeImage(url) : url.startsWith("#") ? url : safeLink(url))}
    >
      {definitions === "" ? masked.text : `${masked.text}\n\n${definitions}`}
    </Markdown>
  );
});

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

// Blocks that one task draws.
const STEP = 2;
const FIRST = 6;

/**
 * Return which blocks are drawn. The end is what a person looks at: the last ones are drawn at once and as they
 * arrive, and those before them one task after the other, back to the first. What is drawn stays drawn.
 */
function useDrawnBlocks(total: number): ReadonlySet<number> {
  const [drawn, setDrawn] = useState<ReadonlySet<number>>(() => last(new Set(), total, FIRST));
  const next = [...Array(total).keys()].findLast((i) => !drawn.has(i));
  // As they arrive.
  if (next !== undefined && next === total - 1) setDrawn(last(drawn, total, STEP));
  useEffect(() => {
    if (next === undefined) return;
    const timer = setTimeout(() => setDrawn((now) => last(now, next + 1, STEP)));
    return () => clearTimeout(timer);
  }, [next]);
  return drawn;
}

/** Return numbers together with the last `count` below `end`. */
function last(known: ReadonlySet<number>, end: number, count: number): Set<number> {
  const found = new Set(known);
  for (let i = end - 1; i >= Math.max(0, end - count); i--) found.add(i);
  return found;
}

// Characters; what is far behind them is read in the next task, and is plain until then.
const READ = 2_000;

/** Return how much of a text is read: what was read, and a little more. */
function useRead(text: string): string {
  const [read, setRead] = useState(0);
  const isNear = text.length - read <= READ;
  if (isNear && text.length > read) setRead(text.length);
  useEffect(() => {
    if (isNear) return;
    const timer = setTimeout(() => setRead(read + READ));
    return () => clearTimeout(timer);
  }, [isNear, read]);
  return isNear ? text : text.slice(0, read);
}

// Blocks; the browser lays out those of a longer text when they come near the view.
const LONG = 80;

/** Show Markdown. */
export default function Prose({ text: whole, growing, plugins }: TextProps) {
  const drawnText = useDrawn(whole, growing);
  // Blocks are found by their exact text, which `marked` changes if lines end with a return.
  const all = useMemo(() => drawnText.replaceAll("\r\n", "\n").replaceAll("\r", "\n"), [drawnText]);
  const text = useRead(all);
  const cutLast = useRef<Cut | null>(null);
  const { blocks, notes } = useMemo(() => {
    cutLast.current = cut(text, cutLast.current);
    const found = notesOf(cutLast.current.text, cutLast.current.blocks);
    let end = 0;
    const made = cutLast.current.blocks.map((raw, i) => {
      end += raw.length;
      return { raw, base: end - raw.length, definitions: found.definitions[i] ?? "" };
    });
    return { blocks: made, notes: found.notes };
  }, [text]);
  const drawn = useDrawnBlocks(blocks.length);
  return (
    <div className={blocks.length > LONG ? "prose long" : "prose"} onClick={jump}>
      {blocks.map(({ raw, base, definitions }, i) => {
        if (raw.trim() === "" || isNote(raw)) return null;
        if (!drawn.has(i)) return <p key={i} className="undrawn">{raw.trim()}</p>;
        // What is open at the end, such as bold words, is closed while the text grows.
        const isOpen = growing && i >= blocks.length - 2 && fence(raw) === null;
        const own = plugins?.concern(raw, base) === true ? plugins : undefined;
        return <Block key={i} text={isOpen ? remend(raw) : raw} base={base} definitions={definitions} plugins={own} />;
      })}
      {text.length < all.length && <p className="undrawn">{all.slice(text.length)}</p>}
      {notes.length > 0 && (
        <section className="footnotes" aria-label={w("footnotes")}>
          <ol>
            {notes.map(({ label, text: note }, i) => (
              <li key={label} data-fragment={`note-${i + 1}`} dir="auto">
                <Block text={note} base={0} definitions="" plugins={undefined} />
                <a href={`#reference-${i + 1}`} aria-label={w("back")}>↩</a>
              </li>
            ))}
          </ol>
        </section>
      )}
    </div>
  );
}

/** Follow a link to a heading or footnote of the same text. The address of the page is of the conversation. */
function jump(event: MouseEvent<HTMLDivElement>): void {
  const href = (event.target as Element).closest("a")?.getAttribute("href");
  if (href?.startsWith("#") !== true) return;
  event.preventDefault();
  const name = readable(href.slice(1)).toLowerCase();
  for (const each of event.currentTarget.querySelectorAll<HTMLElement>("[data-fragment]")) {
    if (each.dataset.fragment !== name) continue;
    each.scrollIntoView({ block: "center" });
    if (each.tagName !== "A") each.tabIndex = -1;
    each.focus({ preventScroll: true });
    return;
  }
}

/** Return a part of an address as people write it; itself if it is not one. */
function readable(part: string): string {
  return /%(?![\da-f]{2})/i.test(part) ? part : new URLSearchParams(`x=${part.replaceAll("+", "%2B").replaceAll("&", "%26")}`).get("x") ?? part;
}

// The first text takes five times as long as the next one. These are read, each in a task of its own, while the answer
// is on its way.
for (const text of ["a *b* [c](d) `e`", "# a", "a\n---", "- a", "> a", "| a |\n|---|\n| b |"]) {
  setTimeout(() => void cut(text, null));
  setTimeout(() => void Markdown({ remarkPlugins: [remarkGfm], children: text }));
}
