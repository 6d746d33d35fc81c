// What the state of a graph has beside its messages.
import { keyOf } from "../messages-of";

/** The components of generative UI, which are shown with their messages. */
const UI = "ui";

/** Return the fields of a state to show, in its order. A graph of the functional API may have a value that is no object. */
export function entriesOf(values: unknown): [string, unknown][] {
  if (values === null || values === undefined) return [];
  if (typeof values !== "object" || Array.isArray(values)) return [["output", values]];
  const messages = keyOf(values);
  return Object.entries(values).filter(
    ([name, each]) => name !== messages && name !== UI && !name.startsWith("__") && each !== undefined,
  );
}
