// The addresses that a model may put into a message.

export function safeLink(url: string): string {
  return /^(https?:\/\/|mailto:)/i.test(url) ? url : "";
}

/** Images of other hosts would tell them who reads the message, so only those of this origin are shown. */
export function safeImage(url: string): string {
  try {
    return new URL(url, location.origin).origin === location.origin && !/^data:/i.test(url) ? url : "";
  } catch {
    return "";
  }
}

/** Return the host of an address of another origin, or an empty text. */
export function hostOf(url: string): string {
  return /^https?:\/\//i.test(url) && URL.canParse(url) ? new URL(url).host : "";
}

/** Return the name by which a link finds a heading, as on GitHub. */
export function slug(heading: string): string {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
}
