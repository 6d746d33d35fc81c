// The newest custom event of a run, as a line of progress.
import { fields, isFields } from "../content/block";

const LONGEST = 200;
const TEXTS = ["message", "text", "step", "title", "description"];

export function Progress({ event }: { event: unknown }) {
  const { text, part } = lineOf(event);
  return (
    <div className="stack tight">
      <p className="thinking" dir="auto"><i className="dot busy" />{text}</p>
      {part !== undefined && <progress className="progress" value={part} aria-label={text} />}
    </div>
  );
}

/** Return what an event says, and how far the work is, from 0 to 1. Nodes write what they like. */
export function lineOf(event: unknown): { text: string; part: number | undefined } {
  const entries = Object.entries(fields(event));
  const only = entries.length === 1 ? entries[0]?.[1] : undefined;
  // `{"progress": {…}}` names what is inside of it.
  if (isFields(only)) return lineOf(only);
  const number = (...keys: string[]) => keys.map((key) => fields(event)[key]).find((each) => typeof each === "number");
  const total = number("total", "of");
  const done = number("done", "current", "completed", "index", "step");
  const percent = number("percent", "percentage", "progress");
  const isCounted = total !== undefined && total > 0 && done !== undefined;
  const part = isCounted ? done / total : percent === undefined ? undefined : percent > 1 ? percent / 100 : percent;
  const words = entries.filter(([key, each]) => typeof each === "string" && key !== "type" && !/id$/i.test(key));
  const word = words.find(([key]) => TEXTS.includes(key))?.[1] ?? words.map(([, each]) => each).join(" · ");
  const said = isFields(event) ? String(word) : typeof event === "string" ? event : JSON.stringify(event);
  const count = isCounted ? `${done}/${total}` : "";
  // Of numbers alone, the bar says enough.
  const plain = said || (part === undefined ? JSON.stringify(event) : count || `${Math.round(part * 100)} %`);
  return { text: (said !== "" && count !== "" ? `${said} ${count}` : plain).slice(0, LONGEST), part: part === undefined ? undefined : Math.min(1, Math.max(0, part)) };
}
