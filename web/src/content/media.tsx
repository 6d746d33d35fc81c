// Images, sounds, films and other files of a message.
import { useRef, useState } from "react";
import type { Block } from "./block";
import { External } from "./external";
import { hostOf, safeImage } from "./links";
import { w } from "./words";

type File = Extract<Block, { url: string }>;

export function Media({ file }: { file: File }) {
  // The address that the browser could not show.
  const [broken, setBroken] = useState("");
  // SVG in an image runs no script.
  const own = /^(?:data:|blob:)/i.test(file.url) ? inline(file) : safeImage(file.url);
  if (file.kind !== "file" && own !== "") {
    if (broken === own) return <div className="row wrap"><span className="meta">{w("broken")}</span><Download file={file} /></div>;
    const shared = { src: own, onError: () => setBroken(own) };
    const name = file.name || w(file.kind);
    if (file.kind === "image") return <Picture name={name} {...shared} />;
    return file.kind === "audio" ? <audio controls aria-label={name} {...shared} /> : <video controls aria-label={name} {...shared} />;
  }
  if (file.kind === "image" && hostOf(file.url) !== "") return <External url={file.url} name={file.name} />;
  return <Download file={file} />;
}

/** A picture, and the same one over the page. */
function Picture({ name, ...shared }: { name: string; src: string; onError: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button type="button" className="picture" aria-haspopup="dialog" title={w("enlarge")} onClick={() => dialog.current?.showModal()}>
        <img className="thumbnail" alt={name} loading="lazy" {...shared} />
      </button>
      <dialog ref={dialog} className="enlarged" aria-label={name} onClick={() => dialog.current?.close()}>
        <button type="button" className="picture" aria-label={w("close")} autoFocus><img alt={name} loading="lazy" src={shared.src} /></button>
      </dialog>
    </>
  );
}

/** Return the data of a file, if it is of the kind that it says. */
function inline(file: File): string {
  return new RegExp(`^(?:blob:|data:${file.kind}/[\\w.+-]+(?:;[\\w=.-]+)*[;,])`, "i").test(file.url) ? file.url : "";
}

function Download({ file }: { file: File }) {
  const name = file.name || w(file.kind);
  const host = hostOf(file.url);
  return (
    <span className="file">
      <span className="clip" translate="no">{name}</span>
      <span className="meta">{file.mime}</span>
      {host !== "" ? (
        <a className="button small" href={file.url} target="_blank" rel="noopener noreferrer">{w("openFile")} {host}</a>
      ) : (
        /^data:/i.test(file.url) && <button className="small" onClick={() => save(file.url, name)}>{w("download")}</button>
      )}
    </span>
  );
}

/** Save data as a file. It is never opened as a page: it may be HTML. */
function save(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url.replace(/^data:[^,;]*/i, "data:application/octet-stream");
  link.download = name.replace(/[/\\]/g, "_");
  link.click();
}
