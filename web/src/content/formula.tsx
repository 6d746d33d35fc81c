// A formula, by KaTeX.
import katex from "katex";
import "katex/dist/katex.min.css";
import { useMemo } from "react";

// Characters; a longer one is shown as its source.
const LONGEST = 5_000;

export default function Formula({ source, display }: { source: string; display: boolean }) {
  const html = useMemo(() => drawn(source, display), [source, display]);
  if (html === null) return <code dir="ltr">{source}</code>;
  const props = { className: display ? "formula scroll" : "formula", dir: "ltr", dangerouslySetInnerHTML: { __html: html } };
  return display ? <div {...props} tabIndex={0} /> : <span {...props} />;
}

/** Return the formula as HTML, which KaTeX makes of its own elements, or null if it is none. */
function drawn(source: string, display: boolean): string | null {
  if (source.length > LONGEST) return null;
  try {
    return katex.renderToString(source, {
      displayMode: display, trust: false, strict: "ignore", maxSize: 20, maxExpand: 300,
    });
  } catch (error) {
    if (error instanceof katex.ParseError) return null;
    throw error;
  }
}
