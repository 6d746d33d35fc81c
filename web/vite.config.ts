import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// Bytes.
const LIMIT = 180 * 1024;

/** Write each text compressed beside it, for the server to send as it is. */
function compressed(): Plugin {
  return {
    name: "compressed",
    generateBundle: {
      // After the others, which may still change the texts.
      order: "post",
      handler(_options, bundle) {
        for (const each of Object.values(bundle)) {
          if (!/\.(js|css|svg)$/.test(each.fileName)) continue;
          const text = Buffer.from(each.type === "chunk" ? each.code : each.source);
          this.emitFile({ type: "asset", fileName: `${each.fileName}.gz`, source: gzipSync(text, { level: 9 }) });
          const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
          this.emitFile({ type: "asset", fileName: `${each.fileName}.br`, source: brotliCompressSync(text, { params }) });
        }
      },
    },
  };
}

/**
 * Make `add` of `src/sheets.ts` of each import of a CSS file, so that it also reaches the chat in another page.
 * The page itself has its own styles in a link, which it loads at once.
 */
function adopted(): Plugin {
  const prefix = "\0adopted:";
  return {
    name: "adopted",
    apply: "build",
    enforce: "pre",
    async resolveId(source, importer, options) {
      if (!source.endsWith(".css") || importer === undefined || importer.endsWith(".html")) return null;
      const found = await this.resolve(source, importer, { ...options, skipSelf: true });
      return found === null ? null : `${prefix}${found.id}.js`;
    },
    load(id) {
      if (!id.startsWith(prefix)) return null;
      const file = id.slice(prefix.length, -".js".length);
      return `import css from ${JSON.stringify(`${file}?inline`)}; import { add } from ${JSON.stringify(sheets)}; add(css);`;
    },
  };
}

/** Leave out the fonts of KaTeX for browsers that do not know `light-dark` either. */
function newFonts(): Plugin {
  return {
    name: "new-fonts",
    enforce: "pre",
    transform: (code, id) =>
      /katex[^/]*\.css/.test(id) ? code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[^"]*"\)/g, "") : undefined,
  };
}

/** Fail the build if the JavaScript that an entry loads at once exceeds `LIMIT` bytes over the wire. */
function bound(): Plugin {
  return {
    name: "bound",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        let initial = new Set<string>();
        const add = (name: string): void => {
          const chunk = bundle[name];
          if (chunk?.type !== "chunk" || initial.has(name)) return;
          initial.add(name);
          chunk.imports.forEach(add);
        };
        for (const entry of Object.values(bundle)) {
          if (entry.type !== "chunk" || !entry.isEntry) continue;
          initial = new Set();
          add(entry.fileName);
          let size = 0;
          for (const name of initial) {
            // Made by `compressed`.
            const sent = bundle[`${name}.br`];
            if (sent?.type !== "asset") this.error(`${name} is not compressed`);
            size += sent.source.length;
          }
          console.log(`initial JavaScript of ${entry.name}: ${(size / 1024).toFixed(1)} KB with brotli`);
          if (size > LIMIT) this.error(`${entry.name} is ${size} bytes with brotli, more than ${LIMIT}`);
        }
      },
    },
  };
}

const stub = fileURLToPath(new URL("src/stubs/langsmith.ts", import.meta.url));
const sheets = fileURLToPath(new URL("src/sheets.ts", import.meta.url));

export default defineConfig({
  base: "./",
  plugins: [adopted(), react(), newFonts(), compressed(), bound()],
  // Tracing is a third of the hook's weight, and no browser uses it.
  resolve: { alias: [{ find: /^langsmith(\/.*)?$/, replacement: stub }] },
  build: {
    outDir: "../threadhold/web",
    emptyOutDir: true,
    target: "es2022",
    // A preload of what a script imports later would be a link in the head of a page with the embedded chat.
    modulePreload: { resolveDependencies: (_file, files, { hostType }) => (hostType === "html" ? files : []) },
    // The page's policy refuses fonts in addresses.
    assetsInlineLimit: 0,
    rollupOptions: {
      input: { index: "index.html", embed: "src/embed.tsx" },
      // Other pages name the script, so its name does not change.
      output: { entryFileNames: ({ name }) => (name === "embed" ? "assets/embed.js" : "assets/[name]-[hash].js") },
    },
  },
  test: { environment: "jsdom", include: ["tests/**/*.test.{ts,tsx}"] },
});
