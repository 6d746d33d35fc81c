// A new diagnosis.
import { First } from "../../first";
import type { StartProps } from "../props";
import { w } from "./words";

export default function Start(props: StartProps) {
  return <First {...props} hint={w("start")}><p className="meta">{w("startMore")}</p></First>;
}
