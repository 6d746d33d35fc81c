// What the page and the frame of a component say to each other.
import type { Fields } from "../api";
import type { Files } from "./client";

export interface Show extends Files {
  type: "show";
  name: string;
  props: Fields;
}

/** What a frame may say is not known: it runs what a graph has brought. */
export type FromFrame =
  | { type: "ready" }
  | { type: "height"; height: unknown }
  | { type: "submit"; text: unknown }
  | { type: "failed" };
