// The token of the person who has signed in: kept for the tab, and given to other tabs that ask.
const KEY = "threadhold-token";
// Tabs of one browser answer at once, or there is none.
const PATIENCE_MS = 300;

export function token(): string | null {
  return sessionStorage.getItem(KEY);
}

export function signIn(value: string | null): void {
  if (value === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, value);
}

/** Give the token to tabs of the same server that ask for it. @returns a function that ends it. */
export function shareToken(server: string): () => void {
  const channel = new BroadcastChannel(nameOf(server));
  channel.onmessage = ({ data }) => {
    const known = token();
    if (data === "ask" && known !== null) channel.postMessage({ token: known });
  };
  return () => channel.close();
}

/** Return the token that another tab has; null if none answers. */
export function askTabs(server: string): Promise<string | null> {
  const channel = new BroadcastChannel(nameOf(server));
  return new Promise<string | null>((resolve) => {
    setTimeout(() => resolve(null), PATIENCE_MS);
    channel.onmessage = ({ data }) => {
      const found = (data as { token?: unknown }).token;
      if (typeof found === "string") resolve(found);
    };
    channel.postMessage("ask");
  }).finally(() => channel.close());
}

const nameOf = (server: string) => `threadhold token ${server}`;
