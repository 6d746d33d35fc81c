// A file on its way: its name, how far it is or what went wrong, and what can be done.
import type { ReactNode } from "react";

interface Props {
  name: string;
  isFailed: boolean;
  /** Buttons beside the name, by their words. */
  actions: { word: string; onClick: () => void }[];
  /** What the button with a cross does, in words. */
  dismiss?: string | undefined;
  onDismiss?: (() => void) | undefined;
  children: ReactNode;
}

export function UploadRow({ name, isFailed, actions, dismiss, onDismiss, children }: Props) {
  return (
    <li className={isFailed ? "alert" : "notice upload"}>
      <div className="row">
        <span className="grow clip">{name}</span>
        {actions.map(({ word, onClick }) => (
          <button key={word} className="quiet small" aria-label={`${word}: ${name}`} onClick={onClick}>{word}</button>
        ))}
        {onDismiss !== undefined && (
          <button className="quiet small" aria-label={`${dismiss}: ${name}`} onClick={onDismiss}>
            <span aria-hidden="true">×</span>
          </button>
        )}
      </div>
      {children}
    </li>
  );
}

/** How far a file is, from 0 to 1; undefined: nobody knows. */
export function Share({ name, done, word }: { name: string; done: number | undefined; word: string }) {
  const share = done === undefined ? undefined : Math.round(done * 100);
  return (
    <>
      <progress className="progress" aria-label={name} max={100} value={share} />
      <span className="meta">{word}{share !== undefined && ` · ${share} %`}</span>
    </>
  );
}
