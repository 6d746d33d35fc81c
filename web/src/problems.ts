// Errors in words on which a person can act.
import { ApiError } from "./api";
import { language, t, type Word } from "./i18n";

const BY_STATUS: Record<number, Word> = {
  0: "offline", 401: "refused", 403: "forbidden", 404: "gone", 413: "tooLarge", 429: "tooMany",
  502: "offline", 503: "offline", 504: "offline",
};

export function explain(error: unknown): string {
  if (isLocked(error)) return t("locked");
  if (isLost(error)) return t("lost");
  if (error instanceof ApiError && error.body.error === "no_such_interrupt") return t("alreadyAnswered");
  const status = statusOf(error);
  const word = status === undefined ? undefined : BY_STATUS[status];
  if (word !== undefined) return t(word);
  if (status === 409) return t("conflict");
  if (status === undefined || status >= 500) return t("broken");
  // The server's own words, in English, say what to change.
  const said = error instanceof Error ? error.message : "";
  return language() === "en" ? said : `${t("notAccepted")} ${said}`;
}

export function isLocked(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 409 && error.body.error === "thread_locked";
  return error instanceof Error && error.message.includes("thread_locked");
}

/** Return whether the server could not be reached, or could not use its database. */
export function isOffline(error: unknown): boolean {
  return error instanceof ApiError && BY_STATUS[error.status] === "offline";
}

/** Return whether there is no such conversation, or none that the person may see. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Return whether a stream ended without its run, so that following it again helps. */
export function isLost(error: unknown): boolean {
  if (error instanceof ApiError || !(error instanceof Error)) return false;
  return /reconnect|fetch|network|stream closed|closed before|aborted|Protocol request failed|idle|terminated/i.test(
    error.message,
  );
}

function statusOf(error: unknown): number | undefined {
  const found = (error as { status?: unknown } | null)?.status;
  return typeof found === "number" ? found : undefined;
}
