// An image of another host. It is not loaded by itself: its host would learn who reads the message, and when.
import { hostOf } from "./links";
import { w } from "./words";

export function External({ url, name }: { url: string; name: string }) {
  const host = hostOf(url);
  if (host === "") return <em>{name}</em>;
  return (
    <span className="external">
      {name !== "" && <em>{name}</em>}
      <a className="button small" href={url} target="_blank" rel="noopener noreferrer">{w("showImage")} {host}</a>
    </span>
  );
}
