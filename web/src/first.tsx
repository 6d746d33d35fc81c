// A new conversation that begins with a message.
import { useRef, useState, type ReactNode } from "react";
import * as api from "./api";
import { Beginning } from "./beginning";
import { Composer } from "./composer";
import { useHolding } from "./holding";
import { t } from "./i18n";
import { newId } from "./ids";
import { about } from "./names";
import { Opening } from "./opening";
import { explain } from "./problems";
import type { Intake, StartProps } from "./products/props";
import { titled } from "./threads";

interface Props extends StartProps {
  hint?: string;
  /** How the product takes files before the first message. */
  intake?: Intake;
  /** What the product shows before the first message. */
  children?: ReactNode;
}

export function First({ assistant, onStarted, hint, intake, children }: Props) {
  const [problem, setProblem] = useState<unknown>(null);
  const [sent, setSent] = useState<string | null>(null);
  const id = useRef<string | null>(null);
  const holding = useHolding();
  const begin = async (text: string): Promise<boolean> => {
    setSent(text);
    setProblem(null);
    // A second attempt uses the thread of the first.
    const thread = (id.current ??= newId());
    try {
      const create = () => api.createThread(thread, assistant.graph_id, titled(text));
      await holding.hold(create, () => Promise.resolve(undefined), setProblem);
      onStarted(thread, assistant.graph_id, text);
      return true;
    } catch (error) {
      setProblem(error);
      setSent(null);
      return false;
    }
  };
  /** Begin the conversation without a message: files are added to it, and the next message reads them. */
  const take = async (files: File[], isText: boolean) => {
    setProblem(null);
    const thread = (id.current ??= newId());
    try {
      await api.createThread(thread, assistant.graph_id, titled(files[0]?.name ?? ""));
      intake?.take(thread, files, isText);
      onStarted(thread, assistant.graph_id, "");
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Opening
      title={api.label(assistant.graph_id)}
      hint={hint ?? about(assistant.graph_id, assistant.description)}
      instead={sent === null ? undefined : <Beginning text={sent} />}
      below={
        <>
          {problem !== null && <p className="alert" role="alert">{explain(problem)}</p>}
          <Composer
            place={`new:${assistant.graph_id}`}
            onSend={begin}
            onStop={sent !== null && problem !== null ? holding.giveUp : undefined}
            onFiles={intake && ((files, isText) => void take(files, isText))}
          />
        </>
      }
    >
      {children ?? <p className="hint">{t("empty")}</p>}
    </Opening>
  );
}
