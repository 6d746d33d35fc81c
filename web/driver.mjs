// A headless browser for tests, driven by lines on standard input. Its path is the argument.
//
// Input:  {"id": number, "run": body of an async function of (page, context, problems)}, and first, if
//         it has {"open": options}, a page in a new context
// Output: {"id": the same, "value": what it returns} or {"id", "error": text}; `{"ready": true}` first.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

// Not the arguments of the browser's package, which keep all in one process and switch CORS off.
const browser = await chromium.launch({
  executablePath: process.argv[2],
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  headless: true,
});
const problems = [];
let context, page;

/** Open a page in a context of its own: without the storage, tabs and clock of the one before. */
async function open(options = {}) {
  await context?.close();
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", ...options });
  context.setDefaultTimeout(40_000);
  context.on("page", watch);
  page = await context.newPage();
}

function watch(opened) {
  opened.on("pageerror", (error) => problems.push(String(error)));
  opened.on("console", (message) => {
    // Answers with an error status are the tests' own subject.
    const isOwn = /^Failed to load resource|net::ERR_/.test(message.text());
    if (message.type() === "error" && !isOwn) problems.push(message.text());
  });
}

await open();
console.log(JSON.stringify({ ready: true }));
const AsyncFunction = (async () => undefined).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const { id } = command;
  try {
    if (command.open !== undefined) await open(command.open);
    const run = new AsyncFunction("page", "context", "problems", command.run ?? "");
    console.log(JSON.stringify({ id, value: (await run(page, context, problems)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ id, error: String(error) }));
  }
}
await browser.close();
process.exit(0);
