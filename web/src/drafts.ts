// What is typed and not sent yet, in the session storage of the tab, by thread or assistant.

const key = (place: string) => `threadhold-draft:${place}`;
const sendingKey = (place: string) => `threadhold-sending:${place}`;
const filesKey = (place: string) => `threadhold-draft-files:${place}`;

/** Return what is typed, behind what was on its way when the page was left. */
export function draft(place: string): string {
  return joined(sessionStorage.getItem(sendingKey(place)) ?? "", typed(place));
}

function typed(place: string): string {
  return sessionStorage.getItem(key(place)) ?? "";
}

/** Join what could not be sent and what was typed since. */
export function joined(...texts: string[]): string {
  return texts.filter((each) => each !== "").join("\n");
}

/** Keep a text that is on its way; an empty one: it has arrived, or is back in the box. */
export function keepSending(place: string, text: string): void {
  keep(sendingKey(place), text);
}

/** Take what was typed, while a text was on its way, to the conversation that the text has begun. */
export function moveDraft(from: string, to: string): void {
  const text = joined(draft(to), typed(from));
  keepDraft(from, "");
  keepSending(from, "");
  keepDraft(to, text);
}

export function keepDraft(place: string, text: string): void {
  keep(key(place), text);
}

/** Return the names of files that were chosen. Their contents are not kept. */
export function draftFiles(place: string): string[] {
  return (sessionStorage.getItem(filesKey(place)) ?? "").split("\n").filter((each) => each !== "");
}

export function keepDraftFiles(place: string, names: string[]): void {
  keep(filesKey(place), names.join("\n"));
}

function keep(at: string, text: string): void {
  if (text === "") sessionStorage.removeItem(at);
  else sessionStorage.setItem(at, text);
}
