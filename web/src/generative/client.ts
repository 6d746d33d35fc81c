// The files of a graph's components, as the server's route `/ui/{graph}` names them.
import { apiUrl, send } from "../api";

export interface Files {
  scripts: string[];
  styles: string[];
  /** The global variable in which the script puts its components. */
  global: string;
}

const known = new Map<string, Promise<Files | null>>();

/** Return the files of a graph's components, or null if it has none. */
export function filesOf(graph: string): Promise<Files | null> {
  const found = known.get(graph) ?? read(graph);
  known.set(graph, found);
  return found;
}

async function read(graph: string): Promise<Files | null> {
  const answer = await send(`${apiUrl}/ui/${encodeURIComponent(graph)}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "" }),
  });
  if (!answer.ok) return null;
  // The elements are only read: their handlers never run.
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const addresses = (selector: string, name: string) =>
    [...page.querySelectorAll(selector)].flatMap((each) => address(each.getAttribute(name)));
  const scripts = addresses("script[src]", "src");
  if (scripts.length === 0) return null;
  return {
    scripts,
    styles: addresses('link[rel="stylesheet"]', "href"),
    global: `__LGUI_${graph.replaceAll(/[^a-zA-Z0-9]/g, "_")}`,
  };
}

/** Return the address of a file below `/ui/`; none of another place. */
function address(path: string | null): string[] {
  return path?.startsWith("/ui/") && !path.includes("..") ? [apiUrl + path] : [];
}
