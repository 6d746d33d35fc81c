import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { beforeAll, describe, expect, it } from "vitest";
import { fence, notesOf } from "../src/content/cut";
import { mask } from "../src/content/math";
import { preload, safeImage, safeLink, Text } from "../src/markdown";

// Milliseconds. What is loaded late takes long on a busy machine.
const LIMIT = 40_000;
const PATIENT = { timeout: 30_000 };

beforeAll(async () => {
  await preload();
});

const shown = (text: string) => render(<Text text={text} growing={false} />).container;

describe("links and images", () => {
  it.each([
    ["https://a.example/", "https://a.example/"], ["mailto:a@b.example", "mailto:a@b.example"],
    ["http://a.example/", "http://a.example/"], ["javascript:alert(1)", ""], ["data:text/html,x", ""], ["//a.example", ""],
    ["/threads", ""], [" javascript:alert(1)", ""], ["vbscript:x", ""],
  ])("links %s", (url, wanted) => expect(safeLink(url)).toBe(wanted));
  it.each([
    ["/assets/a.png", "/assets/a.png"], ["https://spy.example/a.png", ""], ["//spy.example/a.png", ""],
    ["data:image/svg+xml,x", ""], ["\\\\spy.example/a.png", ""],
  ])("images %s", (url, wanted) => expect(safeImage(url)).toBe(wanted));
  it("loads no image of another host, and names the host", () => {
    const found = shown("![a chart](https://spy.example/a.png)");
    expect(found.querySelector("img")).toBeNull();
    expect(found.querySelector("a")?.textContent).toContain("spy.example");
  });
  it("follows a link to a heading of the same text", () => {
    const found = shown("[there](#second-part)\n\n# First\n\n## Second part!");
    const target = found.querySelector("h2");
    Element.prototype.scrollIntoView = () => undefined;
    fireEvent.click(screen.getByText("there"));
    expect(document.activeElement).toBe(target);
    expect(target?.id).toBe("");
  });
});

describe("raw HTML", () => {
  it("is text, and no element", () => {
    const found = shown("<b>x</b> <script>y</script>\n\n<div onclick=a>z</div>\n\n<img src=x onerror=a>");
    expect(found.querySelector("b, script, img, [onclick], [onerror]")).toBeNull();
    expect(found.textContent).toContain("<script>y</script>");
  });
  it("may fold, and lower, but has no attributes", () => {
    const found = shown("<details ontoggle=a><summary>s</summary>x</details>\n\n<details open>\n<summary>More</summary>\n\n- **in**\n\n</details>\n\nH<sub>2</sub>O");
    const details = found.querySelectorAll("details");
    expect(details).toHaveLength(1);
    expect(details[0]?.open).toBe(true);
    expect(details[0]?.querySelector("summary")?.textContent).toBe("More");
    expect(details[0]?.querySelector("li strong")?.textContent).toBe("in");
    expect(found.querySelector("sub")?.textContent).toBe("2");
    expect(found.querySelector("[ontoggle]")).toBeNull();
  });
});

describe("footnotes, tasks and directions", () => {
  it("numbers footnotes over all blocks in the order of their use", () => {
    const found = shown("One[^b].\n\nTwo[^a], again[^b].\n\n[^a]: The *second*.\n[^b]: The first.\n\nEnd [link].\n\n[link]: https://a.example/");
    expect([...found.querySelectorAll("sup a")].map((each) => each.textContent)).toEqual(["1", "2", "1"]);
    expect([...found.querySelectorAll(".footnotes li .prose, .footnotes li p")].map((each) => each.textContent)).toEqual(["The first.", "The second."]);
    expect(found.querySelector(".footnotes em")?.textContent).toBe("second");
    expect(found.querySelector('a[href="https://a.example/"]')?.textContent).toBe("link");
  });
  it("names its tasks, and lets each block find its direction", () => {
    const found = shown("- [x] a\n- [ ] b\n\nمرحبا");
    expect([...found.querySelectorAll("input")].map((each) => [each.checked, each.getAttribute("aria-label")])).toEqual([[true, "done"], [false, "open"]]);
    expect(found.querySelector(":scope p")?.getAttribute("dir")).toBe("auto");
  });
  it("finds no footnotes in code", () => {
    expect(notesOf("", ["```\na[^1]\n```\n", "[^1]: x"]).notes).toEqual([]);
  });
});

describe("formulas", () => {
  it.each([
    ["$E = mc^2$ and \\(a_b\\)", ["E = mc^2", "a_b"]],
    ["a price of $5 and another of $10, or $20-$30", []],
    ["US$5 to A$6, $HOME/$USER, $5M or 6$", []],
    ["`$a$` and [x](https://a.example/$b$)", []],
    ["$$x$$ in a line, $2x$, $\\$5$", ["x", "2x", "\\$5"]],
  ])("in %j", (text, wanted) => {
    const found = mask(text);
    expect(found.formulas.map((each) => each.source)).toEqual(wanted);
    expect(found.text).toHaveLength(text.length);
  });
  it("are drawn, also below each other, and a broken one stays its source", async () => {
    const found = shown("So $a_1*b*c$.\n\n\\[\nx\n\n+ y\n\\]\n\nBroken $\\frac{1}{$ one");
    await waitFor(() => expect(found.querySelectorAll("math")).toHaveLength(2), PATIENT);
    expect(found.querySelector("em")).toBeNull();
    expect(found.textContent).toContain("\\frac{1}{");
  }, LIMIT);
});

describe("code", () => {
  it("knows its language and its end", () => {
    expect(fence("```python x\na\n```\n")).toEqual({ language: "python", code: "a", isClosed: true });
    expect(fence("~~~~\na\n~~~")).toEqual({ language: "", code: "a\n~~~", isClosed: false });
    expect(fence("a `b`")).toBeNull();
  });
  it("gets its colours line by line, and keeps its text", async () => {
    const code = "def f(x):\n    return \"a\"  # why\n";
    const found = shown(`\`\`\`py\n${code}\`\`\``);
    await waitFor(() => expect(found.querySelector(".tok-keyword")?.textContent).toContain("def"), PATIENT);
    expect(found.querySelector("code")?.textContent.trimEnd()).toBe(code.trimEnd());
    expect(found.querySelector("[style]")).toBeNull();
  }, LIMIT);
});

describe("Text", () => {
  it("keeps the elements of finished blocks while the text grows", async () => {
    const { container, rerender } = render(<Text text={"one\n\ntw"} growing />);
    const first = container.querySelector("p");
    rerender(<Text text={"one\n\ntwo **bo"} growing />);
    // Drawn in the next frame.
    await waitFor(() => expect(container.querySelector("strong")?.textContent).toBe("bo"));
    expect(container.querySelector("p")).toBe(first);
  });
  it("shows all of a long text at once, and reads it in parts", async () => {
    const long = Array.from({ length: 100 }, (_, i) => `**${i}** words`).join("\n\n");
    const found = shown(long);
    expect(found.querySelectorAll("strong").length).toBeLessThan(40);
    expect(found.textContent).toContain("**50** words");
    expect(found.querySelector(".prose > :last-child strong")?.textContent).toBe("99");
    await waitFor(() => expect(found.querySelectorAll("strong")).toHaveLength(100), PATIENT);
  }, LIMIT);
});
