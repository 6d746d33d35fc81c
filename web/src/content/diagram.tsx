// A Mermaid diagram. Its colours are the page's own, so that it fits light, dark and paper.
import mermaid from "mermaid";
import { useEffect, useId, useRef, useState } from "react";
import { w } from "./words";

// Light enough for dark words, on white and on black.
const SLICES = [
  "#8fd3c2", "#f0cf8e", "#a9c5ea", "#e6b3a6", "#c7d6a0", "#cbb5dd", "#9fd0d8", "#e3d0b8", "#b8d8b0", "#d9b8c8",
  "#b3bfe0", "#dcd38f",
];

mermaid.initialize({
  startOnLoad: false,
  securityLevel: "strict",
  theme: "base",
  themeVariables: Object.fromEntries(SLICES.map((colour, i) => [`pie${i + 1}`, colour])),
  htmlLabels: false,
  flowchart: { useMaxWidth: true, nodeSpacing: 20, rankSpacing: 40, wrappingWidth: 220 },
  pie: { useMaxWidth: true },
  fontFamily: "inherit",
  suppressErrorRendering: true,
});

export default function Diagram({ source, name }: { source: string; name: string }) {
  const id = `diagram${useId().replace(/\W/g, "")}`;
  const box = useRef<HTMLDivElement>(null);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    let isGone = false;
    mermaid.render(id, source).then(
      ({ svg }) => {
        // `strict` has removed scripts and handlers, and the page's policy runs none.
        if (!isGone) box.current?.replaceChildren(withoutLoads(svg));
      },
      () => {
        if (!isGone) setBroken(true);
      },
    );
    return () => {
      isGone = true;
    };
  }, [id, source]);
  if (isBroken) {
    return (
      <div>
        <p className="meta">{w("noDiagram")}</p>
        <pre className="excerpt" tabIndex={0}>{source}</pre>
      </div>
    );
  }
  return (
    <figure className="diagram" tabIndex={0} aria-label={name}>
      <div ref={box} role="img" aria-label={described(source) || name} />
    </figure>
  );
}

/** Read a drawing, and take out what would load something of another host. A template loads nothing. */
function withoutLoads(svg: string): DocumentFragment {
  const template = document.createElement("template");
  template.innerHTML = svg.replace(/url\(\s*(?!["']?#)[^)]*\)/gi, "none");
  for (const each of template.content.querySelectorAll("image, img")) each.remove();
  return template.content;
}

/** Return the labels of a diagram, for people who do not see it. */
export function described(source: string): string {
  return [...source.matchAll(/"([^"]+)"(?:\s*:\s*(\d+))?/g)]
    .map((found) => (found[2] === undefined ? (found[1] ?? "") : `${found[1] ?? ""}: ${found[2]}`))
    .join("; ");
}
