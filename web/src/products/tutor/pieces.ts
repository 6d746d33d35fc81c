// The difference between a message and its correction. Pure functions.

export interface Issue {
  type: string;
  start: number;
  end: number;
  original: string;
  replacement: string;
  message: string;
  sources: string[];
}

export interface Piece { text: string; kind: "same" | "removed" | "added" }

/** Cut a text into what stays, what goes and what comes. Offsets are in code points. */
export function pieces(text: string, issues: Issue[]): Piece[] {
  const letters = Array.from(text);
  const found: Piece[] = [];
  let at = 0;
  for (const issue of [...issues].sort((a, b) => a.start - b.start)) {
    if (issue.start < at) continue;
    found.push({ text: letters.slice(at, issue.start).join(""), kind: "same" });
    found.push({ text: letters.slice(issue.start, issue.end).join(""), kind: "removed" });
    found.push({ text: issue.replacement, kind: "added" });
    at = issue.end;
  }
  found.push({ text: letters.slice(at).join(""), kind: "same" });
  return found.filter((each) => each.text !== "");
}
