// The mistakes that the tutor keeps, each with the way to erase it.
import { useState } from "react";
import { useWork } from "../../use_work";
import * as requests from "./requests";
import { Trouble } from "./trouble";
import { typeName, w } from "./words";

interface Props { mistakes: requests.Mistake[]; onChange: () => Promise<void> }

export function Mistakes({ mistakes, onChange }: Props) {
  const { isWorking, problem, act } = useWork();
  const [asked, setAsked] = useState<string | null>(null);
  const erase = (id: string) => act(async () => {
    await requests.eraseMistake(id);
    setAsked(null);
    await onChange();
  });
  return (
    <section className="stack">
      <h2>{w("yourMistakes")}</h2>
      <Trouble problem={problem} />
      {mistakes.length === 0 && <p className="hint">{w("noMistakesKept")}</p>}
      <ul className="plain rows tutor-mistakes">
        {mistakes.map((each) => (
          <li key={each.id} className="row wrap">
            <span className="grow">
              <del>{each.original}</del> <ins>{each.replacement}</ins>{" "}
              <span className="meta">{typeName(each.type)}, {each.count === 1 ? w("once") : `${each.count} ${w("times")}`}</span>
            </span>
            {asked === each.id ? (
              <>
                <button className="small danger" disabled={isWorking} onClick={() => void erase(each.id)}>{w("erase")}</button>
                <button className="small" autoFocus onClick={() => setAsked(null)}>{w("cancel")}</button>
              </>
            ) : (
              <button className="small" aria-label={`${w("erase")}: ${each.original} → ${each.replacement}`} onClick={() => setAsked(each.id)}>
                {w("erase")} …
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
