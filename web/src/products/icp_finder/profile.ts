// The ideal customer profile, its changes, and the message that asks for them. Pure functions.

export const FIELDS = ["industries", "regions", "sizes", "keywords", "exclusions"] as const;
export const SIZES = ["1-10", "11-50", "51-200", "201-500", "501-1000", "1001+"];
// What the finder accepts: more or longer values would be dropped without a word.
export const MOST_VALUES = 12;
export const LONGEST_VALUE = 80;

export type Field = (typeof FIELDS)[number];
export type Profile = Record<Field, string[]>;
export interface Change { field: Field; added: string[]; removed: string[]; after: string[] }

const LABELS: Record<Field, string> = {
  industries: "Industries", regions: "Regions", sizes: "Sizes", keywords: "Keywords",
  exclusions: "Exclusions",
};

export function profileOf(value: unknown): Profile | null {
  if (typeof value !== "object" || value === null) return null;
  const given = value as Record<string, unknown>;
  const list = (field: Field) => (Array.isArray(given[field]) ? given[field].map(String) : []);
  return {
    industries: list("industries"), regions: list("regions"), sizes: list("sizes"), keywords: list("keywords"),
    exclusions: list("exclusions"),
  };
}

/** Read the values of a field from a text box, one on each line. Quotes and separators of fields go. */
export function valuesOf(text: string): string[] {
  const values = text.split("\n").map((line) => line.replace(/["“”;]/g, " ").replace(/\s+/g, " ").trim());
  const unique = new Map(values.filter((each) => each.length > 1).map((each) => [each.toLocaleLowerCase(), each]));
  return [...unique.values()];
}

/** Return the first value that the finder would not take, or null. */
export function refusedOf(values: string[]): string | null {
  return values.find((each) => each.length > LONGEST_VALUE) ?? values[MOST_VALUES] ?? null;
}

/** Return what differs between two profiles. The order of values does not count. */
export function changesOf(before: Profile, after: Profile): Change[] {
  return FIELDS.map((field) => ({
    field,
    added: without(after[field], before[field]),
    removed: without(before[field], after[field]),
    after: after[field],
  })).filter((each) => each.added.length > 0 || each.removed.length > 0);
}

/** Write the message that asks for changes, in the form that the finder reads without a model. */
export function messageOf(changes: Change[]): string {
  return changes
    .map((each) => `${LABELS[each.field]}: ${each.after.length === 0 ? "any" : each.after.map((one) => `"${one}"`).join(", ")}`)
    .join("\n");
}

function without(values: string[], others: string[]): string[] {
  const known = new Set(others.map((each) => each.toLocaleLowerCase()));
  return values.filter((each) => !known.has(each.toLocaleLowerCase()));
}
