// The conversations in which the words of a search were said. The titles are in the list already.
import { useEffect, useState } from "react";
import { find, type Found } from "./api";

const SHORTEST = 2;
const LONGEST = 200;
const PAUSE_MS = 300;
const NONE: Found[] = [];

/** Ask the server when the person pauses; a list without these is better than none, so errors are left out. */
export function useFound(text: string): { found: Found[]; isLooking: boolean } {
  const wanted = text.trim().slice(0, LONGEST);
  const [answer, setAnswer] = useState({ to: "", found: NONE });
  useEffect(() => {
    if (wanted.length < SHORTEST) return;
    let isHere = true;
    const tell = (found: Found[]) => isHere && setAnswer({ to: wanted, found });
    const timer = setTimeout(() => void find(wanted).then(tell, () => tell(NONE)), PAUSE_MS);
    return () => {
      isHere = false;
      clearTimeout(timer);
    };
  }, [wanted]);
  if (wanted.length < SHORTEST) return { found: NONE, isLooking: false };
  return { found: answer.to === wanted ? answer.found : NONE, isLooking: answer.to !== wanted };
}
