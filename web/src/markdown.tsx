// Markdown of a model. Its parser is loaded with the first text; until then the text is plain.
import { memo, Suspense } from "react";
import type { TextProps } from "./content/props";
import { preloaded } from "./preloaded";

export { safeImage, safeLink } from "./content/links";
export type { Plugins } from "./content/props";

const { Preloaded: Prose, preload } = preloaded<TextProps>(async () => (await import("./content/prose")).default);
/** Load the parser. */
export { preload };

/** Show Markdown: no raw HTML but a few tags, images of this origin only. */
export const Text = memo(function Text(props: TextProps) {
  return (
    <Suspense fallback={<div className="prose"><p className="undrawn">{props.text}</p></div>}>
      <Prose {...props} />
    </Suspense>
  );
});
