// Ids of messages and threads. `crypto.randomUUID` is missing on plain HTTP, except on this machine.
export { v4 as newId } from "uuid";
