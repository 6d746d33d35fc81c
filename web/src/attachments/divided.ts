// A text that is too long for a message, as files.

const HEADER = /^==> (.{1,200}) <==\r?$/;

export interface Divided {
  /** What stands before the first file. */
  words: string;
  files: File[];
}

/** Divide a text at the lines that name files, as in `==> name <==`; without such a line it is one file. */
export function divided(text: string, now = new Date()): Divided {
  const words: string[] = [];
  const parts: { name: string; lines: string[] }[] = [];
  for (const line of text.split("\n")) {
    const name = HEADER.exec(line)?.[1]?.trim();
    if (name !== undefined && name !== "") parts.push({ name, lines: [] });
    else (parts.at(-1)?.lines ?? words).push(line);
  }
  const files = parts
    .map(({ name, lines }) => new File([lines.join("\n")], name, { type: "text/plain" }))
    .filter((each) => each.size > 0);
  const before = words.join("\n").trim();
  if (files.length > 0 && before.length <= LONGEST) return { words: before, files };
  const whole = new File([files.length > 0 ? before : text], `pasted ${time(now)}.txt`, { type: "text/plain" });
  return { words: "", files: [whole, ...files] };
}

/** More than this is no message of a person. */
const LONGEST = 10_000;

/** Return a time of day that can be in the name of a file. */
function time(now: Date): string {
  return [now.getHours(), now.getMinutes(), now.getSeconds()].map((each) => String(each).padStart(2, "0")).join(".");
}
