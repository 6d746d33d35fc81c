// The learner's conversation, kept by this browser: a refresh or a restart finds it again.

const KEY = "threadhold-tutor-thread";

export function keep(thread: string): void {
  localStorage.setItem(KEY, thread);
}

export function kept(): string | null {
  return localStorage.getItem(KEY);
}

export function forget(): void {
  localStorage.removeItem(KEY);
}
