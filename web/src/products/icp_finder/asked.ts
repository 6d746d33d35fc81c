// The payload of a question, and its words. Pure functions.
import { language } from "../../i18n";
import { optionsInPortuguese, partName, w, type Word } from "./words";

const KINDS = [
  "confirm_icp", "rerun", "context_change", "enrich", "domain", "start_over", "new_session", "offer",
] as const;

export type Kind = (typeof KINDS)[number];
export interface Option { value: string; label: string }
export interface Asked {
  id?: string;
  kind: string;
  question: string;
  options: Option[];
  details: {
    reason?: string;
    changed?: string[];
    website?: string;
    domain?: string;
    candidates?: number;
    names?: string[];
    left_out?: string[];
    new_session?: { method: string; path: string; body: unknown };
  };
}

const CHANGED: Record<string, Word> = {
  industries: "industries", sizes: "sizes", regions: "regions", keywords: "keywords", exclusions: "exclusions",
  customers: "customers",
  website: "partWebsite",
};

export function isKind(kind: string): kind is Kind {
  return (KINDS as readonly string[]).includes(kind);
}

/** Name an option in the language of the page. In English, the finder has named it. */
export function optionName(kind: string, option: Option): string {
  if (language() === "en" || !isKind(kind)) return option.label;
  return optionsInPortuguese[`${kind}.${option.value}`] ?? optionsInPortuguese[option.value] ?? option.label;
}

/** Return the facts of a question: names and values. */
export function factsOf(asked: Asked): [string, string][] {
  const { reason, changed, website, domain, candidates, names, left_out: leftOut } = asked.details;
  const facts: [string, string | undefined][] = [
    [w("reason"), reason],
    [w("changes"), changed?.map(changedName).join(", ")],
    [w("newFor"), asked.kind === "context_change" ? website : undefined],
    [w("count"), candidates === undefined ? undefined : String(candidates)],
    [w("these"), names?.join(", ")],
    [w("without"), leftOut?.join(", ")],
    [w("partWebsite"), domain],
  ];
  return facts.filter((each): each is [string, string] => each[1] !== undefined && each[1] !== "");
}

function changedName(part: string): string {
  const word = CHANGED[part];
  return word === undefined ? partName(part) : w(word);
}
