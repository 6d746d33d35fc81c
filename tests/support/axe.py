"""Accessibility of a page of the web app, as axe judges it."""

import json
from typing import Any

from tests.support.browser import WEB, Page


async def serious(page: Page) -> Any:
    """Return the serious problems of the shown page, in light and in dark."""
    axe = (WEB / "node_modules" / "axe-core" / "axe.min.js").read_text()
    found = []
    for scheme in ("light", "dark"):
        await page.run(f'await page.emulateMedia({{colorScheme: "{scheme}"}})')
        await page.run(f"await page.evaluate({json.dumps(axe)})")
        found += await page.run(
            "const {violations} = await page.evaluate(() => axe.run());"
            'return violations.filter((each) => ["serious", "critical"].includes(each.impact))'
            ".map((each) => [each.id, each.nodes.map((node) => node.html).slice(0, 3)])"
        )
    return found
