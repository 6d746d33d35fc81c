// The style sheets of what is loaded later: in the page, and in each shadow root with the chat.
// The build makes `add` of each import of a CSS file.

const sheets: CSSStyleSheet[] = [];
const roots = new Set<DocumentOrShadowRoot>();

/** Put a style sheet into all roots, and into those to come. */
export function add(css: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  sheets.push(sheet);
  for (const root of roots) root.adoptedStyleSheets.push(sheet);
}

/** Give a root all style sheets in the order in which they were loaded, behind `first`. */
export function adopt(root: DocumentOrShadowRoot, first = ""): void {
  const base = new CSSStyleSheet();
  base.replaceSync(first);
  root.adoptedStyleSheets.push(base, ...sheets);
  roots.add(root);
}
