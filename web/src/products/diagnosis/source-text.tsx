// The text of a source, in parts: one of fifty million characters is never read at once.
import { useEffect, useRef, useState } from "react";
import { explain } from "../../problems";
import * as client from "./client";
import { number } from "./measures";
import * as slices from "./slices";
import { w } from "./words";

interface Props {
  id: string;
  /** The id of the source. */
  source: string;
  chars: number;
  /** A place that is marked, and shown first. */
  place?: slices.Range;
}

export function SourceText({ id, source, chars, place }: Props) {
  const opening = place === undefined ? slices.first(chars) : slices.around(place, chars);
  const [wanted, setWanted] = useState<slices.Wanted>(opening);
  const { slice, problem, retry } = useSlice(id, source, wanted, place);
  const isWhole = slice !== undefined && slice.start === 0 && slice.end >= chars;
  return (
    <div className="stack tight source-text">
      {!isWhole && slice !== undefined && (
        <Pages slice={slice} chars={chars} onWant={setWanted} onBack={place && (() => setWanted(opening))} />
      )}
      {slice === undefined && problem === null && <p className="meta" role="status">{w("loading")}</p>}
      {problem !== null && (
        <p className="alert row" role="alert">
          <span>{explain(problem)}</span>
          <button className="small" onClick={retry}>{w("again")}</button>
        </p>
      )}
      {slice !== undefined && <Shown key={`${slice.start} ${slice.end}`} slice={slice} place={place} />}
    </div>
  );
}

interface ShownProps { slice: slices.Slice; place: slices.Range | undefined }

function Shown({ slice, place }: ShownProps) {
  const box = useRef<HTMLPreElement>(null);
  const isIn = place !== undefined && place.start >= slice.start && place.start < slice.end;
  const [before, marked, after] = isIn ? slices.split(slice, place) : [slice.text, "", ""];
  useEffect(() => {
    const mark = box.current?.querySelector("mark");
    if (box.current === null || mark == null) return;
    // Only the text moves, and not what is around it.
    const { top, height } = box.current.getBoundingClientRect();
    box.current.scrollTop += mark.getBoundingClientRect().top - top - height / 3;
  }, []);
  return (
    <pre className="excerpt" ref={box} tabIndex={0} aria-label={w("text")} dir="auto">
      {before}{isIn && <mark>{marked}</mark>}{after}
    </pre>
  );
}

interface PagesProps {
  slice: slices.Slice;
  chars: number;
  onWant: (wanted: slices.Wanted) => void;
  /** Show the marked place again. */
  onBack: (() => void) | undefined;
}

/** Steps to other parts, and a slider over the whole text. */
function Pages({ slice, chars, onWant, onBack }: PagesProps) {
  const label = `${w("charactersFrom")} ${number(slice.start + 1)}–${number(slice.end)} ${w("of")} ${number(chars)}`;
  return (
    <div className="stack tight pages">
      <div className="row wrap">
        <button className="small" disabled={slice.start === 0} onClick={() => onWant(slices.first(chars))}>{w("begin")}</button>
        <button className="small" disabled={slice.start === 0} onClick={() => onWant(slices.earlier(slice))}>{w("earlier")}</button>
        <button className="small" disabled={slice.end >= chars} onClick={() => onWant(slices.later(slice, chars))}>{w("later")}</button>
        <button className="small" disabled={slice.end >= chars} onClick={() => onWant(slices.last(chars))}>{w("end")}</button>
        {onBack !== undefined && <button className="small" onClick={onBack}>{w("toQuote")}</button>}
      </div>
      <input
        type="range"
        min={0}
        max={Math.max(0, chars - slices.PAGE)}
        step={1}
        value={Math.min(slice.start, Math.max(0, chars - slices.PAGE))}
        aria-label={w("place")}
        aria-valuetext={label}
        onChange={(event) => onWant(slices.from(Number(event.target.value), chars))}
      />
      <p className="meta" role="status">{label}</p>
    </div>
  );
}

// A slider that is drawn tells of many places.
const SETTLE_MS = 120;

/** Read a part of a source. The one before stays while the next one comes. */
function useSlice(id: string, source: string, wanted: slices.Wanted, place: slices.Range | undefined) {
  const [slice, setSlice] = useState<slices.Slice>();
  const [problem, setProblem] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  const kept = useRef(place);
  const isFirst = useRef(true);
  useEffect(() => {
    let isGone = false;
    const timer = setTimeout(() => {
      client.part(id, source, wanted).then(
        (found) => {
          if (isGone) return;
          const isMarked = kept.current !== undefined && kept.current.start >= wanted.start && kept.current.end <= wanted.end;
          setSlice(slices.whole(found, wanted.cut, isMarked ? kept.current : undefined));
          setProblem(null);
        },
        (error: unknown) => {
          if (!isGone) setProblem(error);
        },
      );
    }, isFirst.current ? 0 : SETTLE_MS);
    isFirst.current = false;
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [attempt, id, source, wanted]);
  return { slice, problem, retry: () => setAttempt((n) => n + 1) };
}
