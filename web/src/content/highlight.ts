// The colours of code, by Shiki's grammars. A grammar is loaded when its language occurs.
import { createCssVariablesTheme, createHighlighterCore, type GrammarState, type HighlighterCore, type LanguageInput } from "@shikijs/core";
// WebAssembly is what the page's policy forbids.
import { createJavaScriptRawEngine } from "@shikijs/engine-javascript/raw";

export interface Token {
  text: string;
  /** The last part of a class of `content.css`; empty for plain text. */
  kind: string;
}

const grammars: Record<string, () => LanguageInput> = {
  bash: () => import("@shikijs/langs-precompiled/shellscript"),
  c: () => import("@shikijs/langs-precompiled/c"),
  cpp: () => import("@shikijs/langs-precompiled/cpp"),
  csharp: () => import("@shikijs/langs-precompiled/csharp"),
  css: () => import("@shikijs/langs-precompiled/css"),
  dart: () => import("@shikijs/langs-precompiled/dart"),
  diff: () => import("@shikijs/langs-precompiled/diff"),
  docker: () => import("@shikijs/langs-precompiled/docker"),
  elixir: () => import("@shikijs/langs-precompiled/elixir"),
  go: () => import("@shikijs/langs-precompiled/go"),
  graphql: () => import("@shikijs/langs-precompiled/graphql"),
  haskell: () => import("@shikijs/langs-precompiled/haskell"),
  html: () => import("@shikijs/langs-precompiled/html"),
  ini: () => import("@shikijs/langs-precompiled/ini"),
  java: () => import("@shikijs/langs-precompiled/java"),
  javascript: () => import("@shikijs/langs-precompiled/javascript"),
  json: () => import("@shikijs/langs-precompiled/json"),
  jsx: () => import("@shikijs/langs-precompiled/jsx"),
  julia: () => import("@shikijs/langs-precompiled/julia"),
  kotlin: () => import("@shikijs/langs-precompiled/kotlin"),
  latex: () => import("@shikijs/langs-precompiled/latex"),
  lua: () => import("@shikijs/langs-precompiled/lua"),
  make: () => import("@shikijs/langs-precompiled/make"),
  markdown: () => import("@shikijs/langs-precompiled/markdown"),
  php: () => import("@shikijs/langs-precompiled/php"),
  powershell: () => import("@shikijs/langs-precompiled/powershell"),
  python: () => import("@shikijs/langs-precompiled/python"),
  r: () => import("@shikijs/langs-precompiled/r"),
  ruby: () => import("@shikijs/langs-precompiled/ruby"),
  rust: () => import("@shikijs/langs-precompiled/rust"),
  scala: () => import("@shikijs/langs-precompiled/scala"),
  sql: () => import("@shikijs/langs-precompiled/sql"),
  swift: () => import("@shikijs/langs-precompiled/swift"),
  terraform: () => import("@shikijs/langs-precompiled/terraform"),
  toml: () => import("@shikijs/langs-precompiled/toml"),
  tsx: () => import("@shikijs/langs-precompiled/tsx"),
  typescript: () => import("@shikijs/langs-precompiled/typescript"),
  xml: () => import("@shikijs/langs-precompiled/xml"),
  yaml: () => import("@shikijs/langs-precompiled/yaml"),
};
const ALIASES: Record<string, string> = {
  "c#": "csharp", "c++": "cpp", console: "bash", cs: "csharp", dockerfile: "docker", golang: "go", h: "c", hcl: "terraform",
  hpp: "cpp", hs: "haskell", js: "javascript", json5: "json", jsonc: "json", jsonl: "json", kt: "kotlin", makefile: "make", md: "markdown",
  mjs: "javascript", patch: "diff", ps1: "powershell", py: "python", python3: "python", rb: "ruby", rs: "rust", sh: "bash",
  shell: "bash", shellscript: "bash", svg: "xml", tex: "latex", tf: "terraform", ts: "typescript", yml: "yaml", zsh: "bash",
};
const THEME = "page";
// Characters; the patterns of a grammar may be slow in a long line.
const LONGEST_LINE = 500;

let shared: Promise<HighlighterCore> | undefined;

/** Return what highlights a text of a language, or null if the page has no grammar for it. */
export async function highlighting(language: string): Promise<Highlighting | null> {
  const name = Object.hasOwn(ALIASES, language) ? ALIASES[language] : language;
  const grammar = name !== undefined && Object.hasOwn(grammars, name) ? grammars[name] : undefined;
  if (grammar === undefined || name === undefined) return null;
  shared ??= createHighlighterCore({
    themes: [createCssVariablesTheme({ name: THEME })],
    langs: [],
    engine: createJavaScriptRawEngine(),
  });
  const highlighter = await shared;
  await highlighter.loadLanguage(grammar());
  return new Highlighting(highlighter, language, name === "bash" ? "shellscript" : name);
}

/** The lines of a text that may grow. */
export class Highlighting {
  readonly lines: { text: string; tokens: Token[] }[] = [];
  private at = 0;
  private done = "";
  private state: GrammarState | undefined;

  constructor(
    private readonly highlighter: HighlighterCore,
    readonly language: string,
    private readonly grammar: string,
  ) {}

  continues(text: string): boolean {
    return text.startsWith(this.done);
  }

  /** Go on with whole lines until a time, and return whether none is left. */
  advance(text: string, until: number): boolean {
    for (;;) {
      const end = text.indexOf("\n", this.at);
      if (end < 0) return true;
      if (performance.now() > until) return false;
      const line = text.slice(this.at, end);
      this.lines.push({ text: line, tokens: this.tokens(line) });
      this.at = end + 1;
      this.done = text.slice(0, this.at);
    }
  }

  private tokens(line: string): Token[] {
    const found = this.highlighter.codeToTokensBase(line, {
      lang: this.grammar,
      theme: THEME,
      tokenizeMaxLineLength: LONGEST_LINE,
      ...(this.state === undefined ? {} : { grammarState: this.state }),
    });
    this.state = this.highlighter.getLastGrammarState(found) ?? this.state;
    const tokens: Token[] = [];
    for (const { content, color } of found.flat()) {
      const kind = /--shiki-token-([\w-]+)/.exec(color ?? "")?.[1] ?? "";
      const last = tokens.at(-1);
      if (last?.kind === kind) last.text += content;
      else tokens.push({ text: content, kind });
    }
    return tokens;
  }
}
