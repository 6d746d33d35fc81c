// Texts that are typed and not sent yet, in the session storage of the tab, by thread or assistant.

const key = (place: string) => `threadhold-draft:${place}`;

export function draft(place: string): string {
  return sessionStorage.getItem(key(place)) ?? "";
}

export function keepDraft(place: string, text: string): void {
  if (text === "") sessionStorage.removeItem(key(place));
  else sessionStorage.setItem(key(place), text);
}
