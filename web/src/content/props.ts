// What a Markdown text is given.
import type { Options } from "react-markdown";

/** What a product adds to blocks of a text. */
export interface Plugins {
  /** Return whether a block that begins at an offset of the text gets anything. Others are not rendered again. */
  concern: (block: string, base: number) => boolean;
  of: (base: number) => NonNullable<Options["rehypePlugins"]>;
}

export interface TextProps {
  text: string;
  growing: boolean;
  plugins?: Plugins | undefined;
}
