// Actions behind a button, and a question before something that cannot be undone.
import { useEffect, useId, useRef, type ReactNode } from "react";
import { t } from "./i18n";
import { Icon } from "./icon";

interface MenuProps {
  label: string;
  className?: string;
  children: ReactNode;
}

/** A button with dots, and the actions that it opens. Escape and a click elsewhere close it. */
export function Menu({ label, className = "", children }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const place = () => {
    const from = button.current?.getBoundingClientRect();
    const menu = list.current;
    if (from === undefined || menu === null) return;
    const isLow = from.bottom + 160 > innerHeight;
    menu.style.left = `${Math.min(from.left, innerWidth - 180)}px`;
    menu.style.top = isLow ? "auto" : `${from.bottom + 4}px`;
    menu.style.bottom = isLow ? `${innerHeight - from.top + 4}px` : "auto";
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={`icon quiet ${className}`}
        aria-label={label}
        aria-haspopup="true"
        popoverTarget={id}
        onClick={place}
      >
        <Icon name="dots" />
      </button>
      <div
        ref={list}
        id={id}
        className="menu"
        popover="auto"
        onClick={() => list.current?.hidePopover()}
      >
        {children}
      </div>
    </>
  );
}

interface ConfirmProps {
  question: string;
  action: string;
  onYes: () => void;
  onClose: () => void;
}

/** Ask before `onYes`. The answer that changes nothing has the focus. */
export function Confirm({ question, action, onYes, onClose }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} role="alertdialog" aria-label={action} onClose={onClose}>
      <p>{question}</p>
      <div className="row actions">
        <button autoFocus onClick={() => dialog.current?.close()}>{t("cancel")}</button>
        <button
          className="danger"
          onClick={() => {
            onYes();
            dialog.current?.close();
          }}
        >
          {action}
        </button>
      </div>
    </dialog>
  );
}
