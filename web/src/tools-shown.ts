// Whether calls of tools are shown: a person's choice for all conversations, kept by the browser.
const KEY = "threadhold-tools";
const OFF = "off";

export const toolsShown = (): boolean => localStorage.getItem(KEY) !== OFF;

export function showTools(areShown: boolean): void {
  if (areShown) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, OFF);
}
