// A request that failed, in words, with the way to try again.
import { explain } from "../../problems";
import { w } from "./words";

export function Trouble({ problem, onAgain }: { problem: unknown; onAgain?: () => void }) {
  if (problem === null) return null;
  return (
    <p className="alert row wrap" role="alert">
      <span className="grow">{explain(problem)}</span>
      {onAgain !== undefined && <button onClick={onAgain}>{w("again")}</button>}
    </p>
  );
}
