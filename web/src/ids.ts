// Ids of messages and threads. `crypto.randomUUID` is missing on plain HTTP, except on this machine.
import { v4 as newId } from "uuid";

export { newId };

/** Where the id of a message begins that is sent and not shown. */
export const HIDDEN = "do-not-render-";

/** Return the id of a message that the page sends for the person, who has not written it. */
export const newHiddenId = (): string => HIDDEN + newId();
