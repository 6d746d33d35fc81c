// A new conversation with documents.
import { First } from "../../first";
import type { StartProps } from "../props";
import { Documents } from "./documents";
import { w } from "./words";

export default function Start(props: StartProps) {
  return (
    <First {...props} hint={w("start")}>
      <section className="card" aria-label={w("documents")}><Documents /></section>
    </First>
  );
}
