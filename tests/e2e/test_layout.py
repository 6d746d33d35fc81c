"""Where things are on each page of each product: measured, and compared with reference pictures."""

import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageFilter, ImageStat

from tests.support.all_products import TENANT, USER, all_products, fill
from tests.support.axe import serious
from tests.support.browser import Page
from tests.support.icp import Person
from tests.support.openai_server import OpenAIServer
from tests.support.policy import headers
from tests.support.processes import Running

# The page is the same on both databases.
pytestmark = pytest.mark.only("sqlite")

PICTURES = Path(__file__).parent / "pictures"
SIZES = {375: 740, 820: 1000, 1280: 800, 2200: 1200}
# Width of a reference picture, and the difference of its mean grey in parts of 255 that is allowed in
# any of its tiles: fonts of another machine differ in strokes, not in where the text is.
SMALL, TILES, MOST = 320, 8, 14.0

# What is wrong on the page: elements out of the viewport or the sidebar's, text at the edge of the
# content, and controls whose focus ring a scrolling parent cuts.
_WRONG = """
return page.evaluate(() => {
  const wrong = [];
  const name = (each) => `${each.tagName} ${each.className} ${(each.innerText ?? "").slice(0, 30)}`;
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page overflows");
  if (document.documentElement.scrollHeight > innerHeight) wrong.push("the page is taller than the window");
  const main = document.querySelector("main").getBoundingClientRect();
  const parts = "main :is(h1, h2, h3, p, form, button, input, textarea, select, table, .card, .badge, .bubble, .alert)";
  for (const each of document.querySelectorAll(parts)) {
    if (!each.checkVisibility({ checkVisibilityCSS: true }) || each.closest(".hidden, [aria-hidden]")) continue;
    const box = each.getBoundingClientRect();
    if (box.width < 2 || each.closest(".scroll, pre, .diagram, .tabs, .tools, .quiet")) continue;
    const isClipped = (at) => at !== null && (getComputedStyle(at).clipPath !== "none" || isClipped(at.parentElement));
    if (isClipped(each)) continue;
    const isFrame = each.matches(".bar-top *, header *");
    const gap = isFrame ? 4 : 10;
    if (box.left < main.left + gap || box.right > main.right - gap) wrong.push(`at the edge: ${name(each)}`);
  }
  for (const each of document.querySelectorAll("button, input, textarea, select, a[href], [tabindex='0']")) {
    if (!each.checkVisibility({ checkVisibilityCSS: true }) || each.closest("[inert], .threads")) continue;
    each.focus({ preventScroll: true, focusVisible: true });
    if (document.activeElement !== each) continue;
    const style = getComputedStyle(each);
    if (style.outlineStyle === "none") continue;
    const ring = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
    const box = each.getBoundingClientRect();
    for (let up = each.parentElement; up !== null; up = up.parentElement) {
      if (getComputedStyle(up).overflowX === "visible") continue;
      const around = up.getBoundingClientRect();
      if (box.left - ring < around.left - 0.5 || box.right + ring > around.right + 0.5) {
        wrong.push(`its ring is cut: ${name(each)}`);
      }
    }
  }
  document.activeElement?.blur();
  return wrong;
});
"""


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, endpoint: OpenAIServer
) -> Iterator[tuple[Running, Person]]:
    with all_products(tmp_path_factory.mktemp("layout"), endpoint) as found:
        yield found


@pytest.fixture(scope="module")
async def pages(served: tuple[Running, Person], endpoint: OpenAIServer) -> dict[str, str]:
    """Return the address of each page by name."""
    server, person = served
    made = await fill(server, person, endpoint)
    return {name: f"{server.url}/{query}" for name, query in made.items()}


@pytest.fixture
async def page(chromium: Page) -> AsyncIterator[Page]:
    yield chromium
    await chromium.check()


async def signed_in(page: Page, width: int, **options: Any) -> None:
    """Open a page of this width on which the person has signed in."""
    viewport = {"width": width, "height": SIZES[width]}
    await page.fresh(viewport=viewport, reducedMotion="reduce", **options)
    token = headers(TENANT, USER)["authorization"].removeprefix("Bearer ")
    keep = f'sessionStorage.setItem("threadhold-token", "{token}")'
    await page.run(f"await context.addInitScript({json.dumps(keep)})")


async def go(page: Page, address: str) -> None:
    """Open an address, and wait for what it shows."""
    await page.run(
        f"await page.goto({json.dumps(address)});"
        'await page.locator("main :is(h1, .empty)").first().waitFor({state: "attached"})'
    )
    await page.settled()


async def wrong(
    page: Page, pages: dict[str, str], width: int, look: Callable[[], Awaitable[Any]]
) -> dict[str, Any]:
    """Return what `look` finds on each page."""
    await signed_in(page, width)
    found = {}
    for name, address in pages.items():
        await go(page, address)
        found[name] = await look()
    return found


@pytest.mark.parametrize("width", SIZES)
async def test_nothing_touches_an_edge_overflows_or_cuts_a_focus_ring(
    page: Page, pages: dict[str, str], width: int
) -> None:
    found = await wrong(page, pages, width, lambda: page.run(_WRONG))
    assert found == {name: [] for name in pages}


@pytest.mark.parametrize("width", [375, 1280])
async def test_no_page_has_a_serious_accessibility_problem(
    page: Page, pages: dict[str, str], width: int
) -> None:
    """In light and in dark."""
    found = await wrong(page, pages, width, lambda: serious(page))
    assert found == {name: [] for name in pages}


@pytest.mark.parametrize("width", [375, 1280])
async def test_the_page_that_asks_for_a_token_is_like_the_others(
    page: Page, served: tuple[Running, Person], width: int
) -> None:
    await page.fresh(viewport={"width": width, "height": SIZES[width]}, reducedMotion="reduce")
    await go(page, f"{served[0].url}/")
    await page.until("Sign in")
    assert await page.run(_WRONG) == []
    assert await serious(page) == []


async def test_portuguese_follows_the_browser_and_leaves_no_english(
    page: Page, pages: dict[str, str]
) -> None:
    await signed_in(page, 1280, locale="pt-PT")
    english = set(re.findall(r"\w+", "the your what conversations loading answer again start show"))
    for name in [each for each in pages if each.endswith("start")] + ["inbox"]:
        await go(page, pages[name])
        shown = await page.run(
            "return page.evaluate(() => {"
            ' const copy = document.querySelector(".shell").cloneNode(true);'
            ' for (const each of copy.querySelectorAll(".threads, article h2, .question :is(p, li, .prose)")) each.remove();'
            ' return copy.textContent + [...copy.querySelectorAll("[aria-label]:not(article), [placeholder]")]'
            '   .map((each) => ` ${each.ariaLabel ?? ""} ${each.placeholder ?? ""}`).join("");'
            "})"
        )
        words = set(re.findall(r"\w+", shown.lower()))
        assert words & english == set(), name
    assert await page.run("return page.evaluate(() => document.documentElement.lang)") == "pt"


async def test_the_menu_of_a_phone_holds_the_focus_and_gives_it_back(
    page: Page, pages: dict[str, str]
) -> None:
    await signed_in(page, 375)
    await go(page, pages["chat"])
    await page.click("Conversations")
    inside = "return page.evaluate(() => document.querySelector('.sidebar').contains(document.activeElement))"
    assert await page.run(inside)
    for _ in range(40):
        await page.run('await page.keyboard.press("Tab")')
        behind = "return page.evaluate(() => document.querySelector('main').contains(document.activeElement))"
        assert not await page.run(behind)
    await page.run('await page.keyboard.press("Escape")')
    assert not await page.run('return page.locator(".sidebar").isVisible()')
    focused = "return page.evaluate(() => document.activeElement.getAttribute('aria-label'))"
    assert await page.run(focused) == "Conversations"


async def test_the_theme_is_chosen_and_kept(page: Page, pages: dict[str, str]) -> None:
    await signed_in(page, 1280, colorScheme="light")
    await go(page, pages["start"])
    paper = "return page.evaluate(() => getComputedStyle(document.body).backgroundColor)"
    light = await page.run(paper)
    await page.run('await page.getByLabel("Colours").selectOption("dark")')
    dark = await page.run(paper)
    assert dark != light
    await page.run("await page.reload()")
    assert await page.run(paper) == dark


PAPER = {"media": "print"}
# Few, and of all that can go wrong at once.
DRAWN: dict[str, tuple[str, int, dict[str, Any]]] = {
    "start-1280": ("start", 1280, {}),
    "research-start-375": ("research-start", 375, {}),
    "icp-start-820-pt": ("icp_finder-start", 820, {"locale": "pt-PT"}),
    "chat-2200-dark": ("chat", 2200, {"colorScheme": "dark"}),
    "arabic-375-dark": ("arabic", 375, {"colorScheme": "dark"}),
    "diagnosis-1280": ("diagnosis", 1280, {}),
    "icp-375": ("icp_finder", 375, {}),
    "research-820-print": ("research", 820, PAPER),
    "chat-820-print": ("chat", 820, PAPER),
}


@pytest.mark.parametrize("name", DRAWN)
async def test_a_page_looks_as_its_reference_picture(
    page: Page, pages: dict[str, str], name: str, tmp_path: Path
) -> None:
    """`SCREENSHOTS=1` draws the pictures anew: look at each before you commit it."""
    which, width, options = DRAWN[name]
    options = dict(options)
    media = options.pop("media", "screen")
    await signed_in(page, width, **options)
    await go(page, pages[which])
    # Times and ids differ each time.
    hide = "await page.addStyleTag({content: '.threads, time, .message code, .moment { visibility: hidden }'});"
    file = tmp_path / "now.png"
    await page.run(f'await page.emulateMedia({{media: "{media}"}})')
    await page.run(
        hide + "await page.evaluate(() => document.activeElement.blur());"
        f"await page.screenshot({{path: {json.dumps(str(file))}}})"
    )
    now = small(file)
    reference = PICTURES / f"{name}.png"
    if os.environ.get("SCREENSHOTS"):
        PICTURES.mkdir(exist_ok=True)
        now.quantize(16).save(reference, optimize=True)
    assert farthest(now, Image.open(reference).convert("L")) < MOST, file


def small(file: Path) -> Image.Image:
    """Return a picture in grey, at the size of the references."""
    with Image.open(file) as found:
        height = round(found.height * SMALL / found.width)
        return found.convert("L").resize((SMALL, height), Image.Resampling.LANCZOS)


def farthest(one: Image.Image, other: Image.Image) -> float:
    """Return the largest mean difference of a tile of two pictures."""
    assert one.size == other.size
    blurred = [each.filter(ImageFilter.GaussianBlur(3)) for each in (one, other)]
    difference = ImageChops.difference(*blurred)
    width, height = difference.width / TILES, difference.height / TILES
    tiles = [
        (round(x * width), round(y * height), round((x + 1) * width), round((y + 1) * height))
        for x in range(TILES)
        for y in range(TILES)
    ]
    return max(ImageStat.Stat(difference.crop(each)).mean[0] for each in tiles)
