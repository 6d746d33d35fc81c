// A new diagnosis.
import { First } from "../../first";
import type { StartProps } from "../props";
import { intake } from "./intake";
import { w } from "./words";

export default function Start(props: StartProps) {
  return <First {...props} hint={w("start")} intake={intake}><p className="meta">{w("startMore")}</p></First>;
}
