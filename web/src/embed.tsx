// The chat as a part of another page: `<script src=".../assets/embed.js" data-assistant="chat">`.
import { createRoot } from "react-dom/client";
import * as api from "./api";
import { language } from "./i18n";
import { adopt } from "./sheets";
import styles from "./styles.css?inline";
import { themeOf, type Theme } from "./theme";
import { Threadhold } from "./threadhold";
import { signIn } from "./token";

/** Put the chat into an element. Its styles stay inside, and those of the page stay outside. */
export function mount(element: HTMLElement, assistant: string, theme: Theme = "system"): void {
  const shadow = element.attachShadow({ mode: "open" });
  adopt(shadow, styles);
  const root = document.createElement("div");
  root.className = "embedded";
  root.lang = language();
  root.dataset.theme = theme;
  shadow.append(root);
  createRoot(root).render(<Threadhold assistant={assistant} />);
}

const script = document.querySelector<HTMLScriptElement>("script[data-assistant]");
if (script !== null) {
  const source = new URL(script.src);
  api.setServer(script.dataset.server ?? source.origin);
  if (script.dataset.token !== undefined) signIn(script.dataset.token);
  const target = script.dataset.target;
  const element = target === undefined ? document.createElement("div") : document.querySelector<HTMLElement>(target);
  if (element === null) throw new Error(`the page has no element ${String(target)}`);
  if (target === undefined) script.after(element);
  mount(element, script.dataset.assistant ?? "chat", themeOf(script.dataset.theme));
}
