// Which assistant of a graph a new conversation uses, and with what context.
import { useRef, useState } from "react";
import { label, type Assistant, type Fields } from "../api";
import { explain } from "../problems";
import { focusProblem, SchemaForm } from "../schema-form/form";
import { problemsOf } from "../schema-form/problems";
import { clean, type Problems, type Schema } from "../schema-form/schema";
import { change, create } from "./client";
import { contextOf } from "./inputs";
import { w } from "./words";

interface Props {
  assistants: Assistant[];
  chosen: Assistant;
  /** The context of the graph, if it has one. */
  schema: Schema | null;
  context: unknown;
  problems: Problems;
  onChoose: (assistant: Assistant) => void;
  onContext: (context: unknown) => void;
  /** An assistant was made or changed. */
  onSaved: (assistant: Assistant) => void;
}

/** Return whether a context differs from that of its assistant. */
function isChanged(chosen: Assistant, schema: Schema, context: unknown): boolean {
  return JSON.stringify(clean(context)) !== JSON.stringify(clean(contextOf(chosen, schema)));
}

export function isStandard(assistant: Assistant): boolean {
  return assistant.metadata.created_by === "system";
}

export function AssistantSettings(props: Props) {
  const { assistants, chosen, schema, context, problems, onChoose, onContext, onSaved } = props;
  if (assistants.length < 2 && schema === null) return null;
  return (
    <div className="stack settings">
      {assistants.length > 1 && (
        <label className="field">
          <span>{w("assistant")}</span>
          <select
            value={chosen.assistant_id}
            onChange={(event) => {
              const found = assistants.find((each) => each.assistant_id === event.target.value);
              if (found !== undefined) onChoose(found);
            }}
          >
            {assistants.map((each) => (
              <option key={each.assistant_id} value={each.assistant_id}>
                {isStandard(each) ? `${label(each.graph_id)} (${w("standard")})` : each.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {schema !== null && (
        <details open={problems.size > 0 || undefined}>
          <summary>{w("settings")}{isChanged(chosen, schema, context) && <span className="badge">{w("changed")}</span>}</summary>
          <div className="card stack">
            <p className="hint">{w("settingsHelp")}</p>
            <SchemaForm schema={schema} label={w("settings")} value={context} problems={problems} onChange={onContext} isPartial />
            <Saving key={chosen.assistant_id} chosen={chosen} schema={schema} context={context} onSaved={onSaved} />
          </div>
        </details>
      )}
    </div>
  );
}

interface SavingProps {
  chosen: Assistant;
  schema: Schema;
  context: unknown;
  onSaved: (assistant: Assistant) => void;
}

/** Keep the settings as an assistant. */
function Saving({ chosen, schema, context, onSaved }: SavingProps) {
  const [name, setName] = useState(isStandard(chosen) ? "" : chosen.name);
  const [said, setSaid] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [isWrong, setWrong] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const save = async (work: (name: string, context: Fields) => Promise<Assistant>) => {
    setSaid(null);
    const isUnnamed = name.trim() === "";
    setWrong(isUnnamed);
    if (isUnnamed || problemsOf(schema, context, true).size > 0) {
      focusProblem(box.current);
      return;
    }
    setSaving(true);
    try {
      onSaved(await work(name.trim(), clean(context) as Fields));
      setSaid(w("saved"));
    } catch (error) {
      setSaid(explain(error));
    }
    setSaving(false);
  };
  return (
    <div className="stack tight" ref={box}>
      <label className="field">
        <span>{w("name")}</span>
        <input value={name} aria-invalid={isWrong || undefined} onChange={(event) => setName(event.target.value)} />
      </label>
      {isWrong && <p className="wrong" role="alert">{w("nameNeeded")}</p>}
      <div className="row wrap">
        <button type="button" className="small" disabled={isSaving} onClick={() => void save((...given) => create(chosen.graph_id, ...given))}>
          {w("make")}
        </button>
        {!isStandard(chosen) && (
          <button type="button" className="small" disabled={isSaving} onClick={() => void save((...given) => change(chosen.assistant_id, ...given))}>
            {w("change")}
          </button>
        )}
        {said !== null && <span className="meta" role="status">{said}</span>}
      </div>
    </div>
  );
}
