// The page where a conversation of an assistant begins: its name, what it does, and a form or a composer.
import type { ReactNode } from "react";
import { t } from "./i18n";
import { Icon } from "./icon";
import { go } from "./route";

interface Props {
  title: string;
  hint: string;
  children?: ReactNode;
  /** Shown in place of all but what is below. */
  instead?: ReactNode;
  /** What stays at the lower edge, such as the composer. */
  below?: ReactNode;
}

export function Opening({ title, hint, children, instead, below }: Props) {
  return (
    <section className="conversation">
      {instead}
      <div className="page" hidden={instead !== undefined}>
        <div className="start">
          <button className="quiet small" onClick={() => go({})}><Icon name="left" size={14} />{t("back")}</button>
          <h1>{title}</h1>
          {hint !== "" && <p className="hint">{hint}</p>}
          {children}
        </div>
      </div>
      {below !== undefined && <div className="below">{below}</div>}
    </section>
  );
}
