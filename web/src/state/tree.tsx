// A value of any kind as a person reads it: names, lists and texts instead of JSON.
import { useState } from "react";
import { Fold } from "../fold";
import "./styles.css";
import { w } from "./words";

// Rows at once, and how many more a button shows.
const ROOM = 30;
const MORE = 100;
// Room for less of a part than this is not used: the part is folded.
const FEW = 4;

interface Props {
  value: unknown;
  /** Rows to show at once. */
  room?: number;
}

/** Show a value. A small one is open with all that is in it; of a large one the first rows are. */
export function Tree({ value, room = ROOM }: Props) {
  if (typeof value === "string") return value === "" ? <span className="hint">{w("empty")}</span> : <Long text={value} />;
  if (value === null || value === undefined) return <span className="hint">{w("nothing")}</span>;
  if (typeof value !== "object") return <span className="value">{String(value)}</span>;
  const parts = Object.entries(value) as [string, unknown][];
  if (parts.length === 0) return <span className="hint">{w("empty")}</span>;
  return <Parts value={value} parts={parts} room={room} />;
}

function Parts({ value, parts, room }: { value: object; parts: [string, unknown][]; room: number }) {
  const [added, setAdded] = useState(0);
  const isList = Array.isArray(value);
  const shown = parts.slice(0, room + added);
  const left = parts.length - shown.length;
  const first = parts.slice(0, room);
  const nested = first.filter(([, each]) => isNested(each)).length;
  // Parts that hold others share what is left of the room.
  const share = rowsOf(value, room) <= room ? room : Math.floor((room - first.length) / nested);
  const more = left > 0 && (
    <button type="button" className="small" onClick={() => setAdded(added + MORE)}>
      {w("show").replace("{}", String(Math.min(left, MORE)))} <span className="meta">{w("left").replace("{}", String(left))}</span>
    </button>
  );
  if (isList && !parts.some(([, each]) => isNested(each))) {
    return (
      <ul className="tree-list">
        {shown.map(([name, each]) => <li key={name}><Tree value={each} /></li>)}
        {more && <li>{more}</li>}
      </ul>
    );
  }
  return (
    <dl className={isList ? "tree numbered" : "tree"}>
      {shown.map(([name, each]) => {
        const isOpen = !isNested(each) || share >= FEW || rowsOf(each, share) <= share;
        return (
          <div key={name} className={isOpen && isNested(each) ? "inside" : undefined}>
            <dt dir="auto" translate="no">{isList ? Number(name) + 1 : name}</dt>
            <dd>{isOpen ? <Tree value={each} room={share} /> : <Closed value={each} />}</dd>
          </div>
        );
      })}
      {more && <div><dt /><dd>{more}</dd></div>}
    </dl>
  );
}

function Closed({ value }: { value: unknown }) {
  return <Fold className="fold" summary={<summary><span className="clip">{brief(value)}</span></summary>}><Tree value={value} /></Fold>;
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/** Count the rows of a value; at most one more than asked. */
function rowsOf(value: object, most: number): number {
  let rows = 0;
  for (const each of Object.values(value)) {
    if (rows > most) break;
    rows += isNested(each) ? 1 + rowsOf(each, most - rows - 1) : 1;
  }
  return rows;
}

// Characters and lines of a text before a button shows the rest.
const LONG = 1_200;
const LINES = 20;

/** Show a text as it is; the beginning of a long one. */
export function Long({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const start = isWhole ? text : text.slice(0, LONG).split("\n", LINES).join("\n");
  const isCut = start.length < text.length;
  return (
    <>
      <span className="as-is" dir="auto">{isCut ? `${start}…` : text}</span>
      {isCut && <button type="button" className="small" onClick={() => setWhole(true)}>{w("showAll")}</button>}
    </>
  );
}

const BRIEF = 160;

/** Say a value in a few words. */
export function brief(value: unknown): string {
  if (typeof value === "string") return value.slice(0, BRIEF);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `${value.length} ${w(value.length === 1 ? "item" : "items")}`;
  return Object.entries(value)
    .slice(0, 4)
    .map(([name, each]) => `${name}: ${typeof each === "object" && each !== null ? "…" : brief(each)}`)
    .join(", ");
}
