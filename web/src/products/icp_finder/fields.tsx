// Values as a row of tags.
import type { ReactNode } from "react";

export function textsOf(values: string[]): ReactNode {
  return <ul className="plain tags">{values.map((each) => <li key={each}>{each}</li>)}</ul>;
}
