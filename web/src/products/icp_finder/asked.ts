// The payload of a question, and its words. Pure functions.
import { w, partName, type Word } from "./words";

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

const OPTIONS: Record<string, Word> = {
  confirm: "optConfirm", change: "optChange", continue: "optContinue", new: "optNew", rerun: "optRerun",
  enrich: "optEnrich", later: "optLater", ours: "optOurs", customer: "optCustomer", candidate: "optCandidate",
  mention: "optMention", start_over: "optStartOver", cancel: "optCancel", do: "optDo", skip: "optSkip",
};

const CHANGED: Record<string, Word> = {
  industries: "industries", sizes: "sizes", regions: "regions", keywords: "keywords", exclusions: "exclusions",
  customers: "customers",
  website: "partWebsite",
};

export function isKind(kind: string): kind is Kind {
  return (KINDS as readonly string[]).includes(kind);
}

/** Name an option in the language of the page. */
export function optionName(kind: string, option: Option): string {
  if (option.value === "keep") {
    return w(kind === "rerun" ? "optKeepFound" : kind === "new_session" ? "optStay" : "optKeep");
  }
  const word = OPTIONS[option.value];
  return word === undefined || !isKind(kind) ? option.label : w(word);
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
