// Light or dark: as the person chooses, by default as the system does.
import { useState } from "react";
import { wordsOf } from "./i18n";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const KEY = "threadhold-theme";
const w = wordsOf(
  { theme: "Colours", system: "As the system", light: "Light", dark: "Dark" },
  { theme: "Cores", system: "Como o sistema", light: "Claro", dark: "Escuro" },
);

/** Return the theme that a text names, or `system`. */
export function themeOf(text: string | null | undefined): Theme {
  return themes.find((each) => each === text) ?? "system";
}

export function theme(): Theme {
  return themeOf(localStorage.getItem(KEY));
}

/** Show the page in a theme, and keep it for this browser. */
export function setTheme(chosen: Theme): void {
  localStorage.setItem(KEY, chosen);
  document.documentElement.dataset.theme = chosen;
}

export function ThemeChoice() {
  const [chosen, setChosen] = useState(theme);
  return (
    <label>
      <span className="hidden">{w("theme")}</span>
      <select
        className="small"
        value={chosen}
        onChange={(event) => {
          const wanted = themeOf(event.target.value);
          setTheme(wanted);
          setChosen(wanted);
        }}
      >
        {themes.map((each) => <option key={each} value={each}>{w(each)}</option>)}
      </select>
    </label>
  );
}
