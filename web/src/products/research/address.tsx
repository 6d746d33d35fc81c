// An address of a page: a link if it is safe to follow.
import { safeLink } from "../../markdown";

export function Address({ url, text }: { url: string; text?: string }) {
  const link = safeLink(url);
  if (link === "") return <span className="meta address">{text === undefined ? url : `${text} (${url})`}</span>;
  return <a className="address" href={link} target="_blank" rel="noopener noreferrer">{text ?? url}</a>;
}
