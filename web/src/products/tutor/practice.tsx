// Exercises that are due: one at a time.
import { useState } from "react";
import { until } from "./until";
import * as requests from "./requests";
import { Trouble } from "./trouble";
import { useLoaded } from "./use_loaded";
import { useWork } from "../../use_work";
import { typeName, w, type Word } from "./words";

const VERDICTS: Record<string, Word> = { right: "right", almost: "almost", wrong: "wrong" };

export function Practice() {
  const { value, problem, reload } = useLoaded(requests.exercises);
  const exercise = value?.exercises[0];
  return (
    <section className="card stack" aria-label={w("practice")}>
      <Trouble problem={problem} onAgain={() => void reload()} />
      {value === null && problem === null && <p role="status">{w("loading")} …</p>}
      {value !== null && exercise === undefined && <p>{w("noneDue")}</p>}
      {value !== null && exercise !== undefined && (
        <>
          <p className="meta">{value.due} {w(value.due === 1 ? "dueOne" : "dueNow")}</p>
          <One key={`${exercise.id}-${value.due}`} exercise={exercise} onNext={reload} />
        </>
      )}
    </section>
  );
}

function One({ exercise, onNext }: { exercise: requests.Exercise; onNext: () => Promise<void> }) {
  const [text, setText] = useState("");
  const [graded, setGraded] = useState<requests.Graded | null>(null);
  const { isWorking, problem, act } = useWork();
  const give = (answer: string | null) => void act(async () => setGraded(await requests.answer(exercise.id, answer)));
  return (
    <>
      <h2>{w("correct")} <span className="meta">{typeName(exercise.type)}</span></h2>
      <blockquote className="tutor-sentence" lang="en">{exercise.sentence}</blockquote>
      <Trouble problem={problem} />
      {graded === null ? (
        <form className="stack" onSubmit={(event) => { event.preventDefault(); if (text.trim() !== "") give(text.trim()); }}>
          <input lang="en" autoFocus aria-label={w("yours")} placeholder={w("yours")} maxLength={1000} value={text}
            autoComplete="off" onChange={(event) => setText(event.target.value)} />
          <div className="actions">
            <button className="primary" disabled={isWorking || text.trim() === ""}>{w("check")}</button>
            <button type="button" disabled={isWorking} onClick={() => give(null)}>{w("dontKnow")}</button>
          </div>
        </form>
      ) : (
        <Result graded={graded} isWorking={isWorking} onNext={() => void act(onNext)} />
      )}
    </>
  );
}

interface ResultProps { graded: requests.Graded; isWorking: boolean; onNext: () => void }

function Result({ graded, isWorking, onNext }: ResultProps) {
  return (
    <div className="stack tutor-result">
      <div role="status">
        <p className={graded.verdict === "right" ? "notice tutor-good" : "notice"}><strong>{w(VERDICTS[graded.verdict] ?? "wrong")}</strong></p>
        <p>{w("solution")}: <span lang="en">{graded.right}</span></p>
        <p className="hint">{graded.message}</p>
        <p className="meta">{graded.recorded ? `${w("comesAgain")} ${until(graded.due)}.` : w("early")}</p>
      </div>
      <button autoFocus className="primary" disabled={isWorking} onClick={onNext}>{w("next")}</button>
    </div>
  );
}
