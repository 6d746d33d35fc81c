// The inside of a component's frame. It has an origin of its own: neither the page nor its storage is in reach.
import * as React from "react";
import * as ReactDOM from "react-dom";
import { createRoot, type Root } from "react-dom/client";
import * as JsxRuntime from "react/jsx-runtime";
import type { FromFrame, Show } from "./protocol";

const ID = "component";
type Component = React.ComponentType<Record<string, unknown>>;

const say = (message: FromFrame) => parent.postMessage(message, "*");
const failed = () => say({ type: "failed" });

/** What components get from `useStreamContext`: a message of the person is all that they may send. */
const stream = {
  meta: {},
  values: {},
  messages: [],
  isLoading: false,
  submit: (input: unknown) => {
    const messages = (input as { messages?: unknown } | null)?.messages;
    const last = (Array.isArray(messages) ? messages : [messages]).at(-1) as { content?: unknown } | string | undefined;
    const text = typeof last === "string" ? last : last?.content;
    if (typeof text === "string" && text.trim() !== "") say({ type: "submit", text });
  },
};

const modules: Record<string, unknown> = {
  react: React,
  "react-dom": ReactDOM,
  "react/jsx-runtime": JsxRuntime,
  "@langchain/langgraph-sdk/react-ui": { useStreamContext: () => stream },
  "@langchain/langgraph-sdk/react": { useStream: () => stream },
};

let shown: Component | null = null;
let root: Root | null = null;
let props: Record<string, unknown> = {};

class Boundary extends React.Component<{ children: React.ReactNode }, { isBroken: boolean }> {
  override state = { isBroken: false };
  static getDerivedStateFromError() {
    return { isBroken: true };
  }
  override componentDidCatch() {
    failed();
  }
  override render() {
    return this.state.isBroken ? null : this.props.children;
  }
}

function draw(): void {
  if (shown !== null) root?.render(<Boundary>{React.createElement(shown, props)}</Boundary>);
}

// The names by which a bundle of components finds its surroundings.
Object.assign(globalThis, {
  [Symbol.for("LGUI_EXT_STORE")]: {
    respond: (_: string, component: Component | undefined, target: HTMLElement) => {
      if (component === undefined) {
        failed();
        return;
      }
      shown = component;
      // What the boundary has caught is no error of the page.
      root = createRoot(target, { onCaughtError: failed, onUncaughtError: failed });
      draw();
    },
  },
  [Symbol.for("LGUI_REQUIRE")]: (name: string) => {
    if (name in modules) return modules[name];
    throw new Error(`a component needs ${name}, which the page does not have`);
  },
});

function start({ scripts, styles, global, name }: Show): void {
  const host = document.createElement("div");
  host.id = ID;
  document.body.append(host);
  const inside = host.attachShadow({ mode: "open" });
  for (const href of styles) inside.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href }));
  const script = Object.assign(document.createElement("script"), { src: scripts[0] ?? "" });
  script.onerror = failed;
  script.onload = () => {
    const bundle = (globalThis as Record<string, unknown>)[global] as { render?: (name: string, id: string) => void } | undefined;
    try {
      bundle?.render?.(name, ID);
    } catch {
      failed();
    }
    if (bundle?.render === undefined) failed();
  };
  document.head.append(script);
  new ResizeObserver(() => say({ type: "height", height: Math.ceil(document.body.scrollHeight) })).observe(host);
}

let isStarted = false;
addEventListener("message", (event: MessageEvent<Show>) => {
  if (event.source !== parent) return;
  props = event.data.props;
  if (isStarted) {
    draw();
    return;
  }
  isStarted = true;
  start(event.data);
});
say({ type: "ready" });
