// A new conversation: choose the assistant, then write, or begin as its product says.
import { lazy, Suspense } from "react";
import * as api from "./api";
import { First } from "./first";
import { t } from "./i18n";
import { Icon, productIcon } from "./icon";
import { about } from "./names";
import { products } from "./products";
import type { StartProps } from "./products/props";
import { go } from "./route";

const Any = lazy(() => import("./assistants/begin"));

interface Props {
  assistants: api.Assistant[] | null;
  chosen: string | null;
  onStarted: StartProps["onStarted"];
}

export function Start({ assistants, chosen, onStarted }: Props) {
  if (assistants === null) return <p className="empty" role="status">{t("loading")}</p>;
  const assistant = assistants.find((each) => each.graph_id === chosen);
  if (assistant === undefined) return <Choice assistants={assistants} unknown={chosen} />;
  const product = products[assistant.graph_id];
  const Begin = product === undefined ? Any : (product.Start ?? First);
  return (
    <Suspense fallback={<p className="empty" role="status">{t("loading")}</p>}>
      <Begin key={assistant.graph_id} assistant={assistant} onStarted={onStarted} />
    </Suspense>
  );
}

function Choice({ assistants, unknown }: { assistants: api.Assistant[]; unknown: string | null }) {
  return (
    <div className="page">
      <section className="start">
        <h1>{t("start")}</h1>
        {unknown !== null && <p className="alert" role="alert">{t("noSuchAssistant")} {unknown}</p>}
        {assistants.length === 0 && <p className="hint">{t("noAssistants")}</p>}
        <ul className="plain products">
          {assistants.map((each) => (
            <li key={each.assistant_id}>
              <button className="card" onClick={() => go({ assistant: each.graph_id })}>
                <Icon name={productIcon[each.graph_id] ?? "chat"} size={22} />
                <strong>{api.label(each.graph_id)}</strong>
                <span>{about(each.graph_id, each.description)}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
