// What opens over the page, such as a quote. Escape closes it, and the focus returns.
import { useEffect, useRef, type ReactNode } from "react";
import { t } from "./i18n";

interface Props { title: string; onClose: () => void; children: ReactNode }

export function Drawer({ title, onClose, children }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const found = box.current;
    if (found !== null && !found.open) found.showModal();
  }, []);
  return (
    <dialog
      ref={box}
      className="drawer"
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === box.current) box.current.close();
      }}
    >
      <div>
        <header className="row">
          <h2 className="grow">{title}</h2>
          <button className="quiet" onClick={() => box.current?.close()}>{t("close")}</button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
