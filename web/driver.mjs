// A headless browser for tests, driven by lines on standard input.
//
// Input:  {"run": body of an async function of (page, context)}
// Output: {"value": what it returns} or {"error": text}; `{"ready": true}` first.
import { createInterface } from "node:readline";
import chromium from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";

const browser = await playwright.launch({
  executablePath: await chromium.executablePath(), args: chromium.args, headless: true,
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB" });
const page = await context.newPage();
const problems = [];
page.on("pageerror", (error) => problems.push(String(error)));
page.on("console", (message) => {
  // Answers with an error status are the tests' own subject.
  if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) problems.push(message.text());
});
page.setDefaultTimeout(20_000);
console.log(JSON.stringify({ ready: true }));
const AsyncFunction = (async () => undefined).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const value = await new AsyncFunction("page", "context", "problems", JSON.parse(line).run)(page, context, problems);
    console.log(JSON.stringify({ value: value ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
await browser.close();
process.exit(0);
