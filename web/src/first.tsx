// A new conversation that begins with a message.
import { useRef, useState } from "react";
import * as api from "./api";
import { Composer } from "./composer";
import { t } from "./i18n";
import { Icon } from "./icon";
import { explain } from "./problems";
import type { StartProps } from "./products/props";
import { go } from "./route";

export function First({ assistant, onStarted }: StartProps) {
  const [problem, setProblem] = useState<unknown>(null);
  const made = useRef<string | null>(null);
  const begin = async (text: string): Promise<boolean> => {
    try {
      // A second attempt uses the thread of the first.
      made.current ??= (await api.createThread(assistant.graph_id, text.slice(0, 80))).thread_id;
      onStarted(made.current, assistant.graph_id, text);
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    }
  };
  return (
    <section className="conversation">
      <div className="page">
        <div className="start">
          <button className="quiet small" onClick={() => go({})}><Icon name="left" size={14} />{t("back")}</button>
          <h1>{api.label(assistant.graph_id)}</h1>
          <p className="hint">{assistant.description}</p>
          <p className="hint">{t("empty")}</p>
        </div>
      </div>
      <div className="below">
        {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
        <Composer place={`new:${assistant.graph_id}`} onSend={begin} />
      </div>
    </section>
  );
}
