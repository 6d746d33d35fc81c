import { render, waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { safeImage, safeLink, Text } from "../src/markdown";

describe("links and images", () => {
  it.each([
    ["https://a.example/", "https://a.example/"], ["mailto:a@b.example", "mailto:a@b.example"],
    ["http://a.example/", ""], ["javascript:alert(1)", ""], ["data:text/html,x", ""], ["//a.example", ""],
    ["/threads", ""], [" javascript:alert(1)", ""],
  ])("links %s", (url, wanted) => expect(safeLink(url)).toBe(wanted));
  it.each([
    ["/assets/a.png", "/assets/a.png"], ["https://spy.example/a.png", ""], ["//spy.example/a.png", ""],
    ["data:image/svg+xml,x", ""], ["\\\\spy.example/a.png", ""],
  ])("images %s", (url, wanted) => expect(safeImage(url)).toBe(wanted));
});

describe("Text", () => {
  it("renders no raw HTML", () => {
    const { container } = render(<Text text={"<b>x</b> <script>y</script>\n\n<div onclick=a>z</div>"} growing={false} />);
    expect(container.querySelector("b, script, [onclick]")).toBeNull();
  });
  it("keeps the elements of finished blocks while the text grows", async () => {
    const { container, rerender } = render(<Text text={"one\n\ntw"} growing />);
    const first = container.querySelector("p");
    rerender(<Text text={"one\n\ntwo **bo"} growing />);
    // Drawn in the next frame.
    await waitFor(() => expect(container.querySelector("strong")?.textContent).toBe("bo"));
    expect(container.querySelector("p")).toBe(first);
  });
});
