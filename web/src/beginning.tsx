import { t } from "./i18n";

/** The first message of a conversation, from Enter until its conversation opens. */
export function Beginning({ text }: { text: string }) {
  return (
    <div className="scroller">
      <div className="stack column">
        <ol className="plain messages">
          <li className="message human">
            <span className="hidden">{t("you")}:</span>
            {text !== "" && <div className="bubble" dir="auto">{text}</div>}
          </li>
        </ol>
        <p className="thinking" role="status"><i className="dot busy" />{t("thinking")}</p>
      </div>
    </div>
  );
}
