// Errors in words on which a person can act.
import { ApiError } from "./api";
import { t } from "./i18n";

export function explain(error: unknown): string {
  const status = error instanceof ApiError ? error.status : statusOf(error);
  if (status === 0) return t("offline");
  if (status === 401) return t("refused");
  if (status === 404) return t("gone");
  if (status === 429) return t("busy");
  if (status === 409 && isLocked(error)) return t("locked");
  const text = error instanceof Error ? error.message : String(error);
  if (/reconnect|fetch|network|stream closed/i.test(text)) return t("lost");
  return `${t("failed")} ${text}`;
}

export function isLocked(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 409 && error.body.error === "thread_locked";
  return error instanceof Error && error.message.includes("thread_locked");
}

function statusOf(error: unknown): number | undefined {
  const found = (error as { status?: unknown } | null)?.status;
  return typeof found === "number" ? found : undefined;
}
