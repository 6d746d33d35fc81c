// The title of a conversation at its head.
import type { Thread } from "./api";
import { headingOf } from "./threads";

export function Title({ of }: { of: Thread }) {
  const { name, begun } = headingOf(of);
  return <>{name}{begun !== "" && <span className="moment"> · {begun}</span>}</>;
}
