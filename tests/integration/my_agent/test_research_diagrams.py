"""The diagrams of research reports, read by Mermaid's own parser."""

import json
import shutil
import subprocess

import pytest

from my_agent.research.model import Claim, Report, Section
from my_agent.research.report.mermaid import diagrams
from tests.support.javascript import JAVASCRIPT

pytestmark = pytest.mark.usefixtures("packages")

HOSTILE = (
    'a"] --> x["b',
    "```\n--> | end\nclick q call alert(1)",
    "%%{init: {'securityLevel': 'loose'}}%%",
    "<img src=x onerror=alert(1)> &quot; #quot; ;",
    "\u202egnisrever\u202c \u0000 \u2028 \U0001f600 漢字",
    "subgraph end classDef style linkStyle",
    "::: ~~~ === ((( ))) [[ ]] {{ }} >] \\ /",
    "",
    "x" * 500,
)


def errors(texts: list[str]) -> list[str | None]:
    """Return Mermaid's error for each text; None if it is a diagram."""
    node = shutil.which("node")
    assert node is not None, "tests of diagrams need Node 20 or later"
    found = subprocess.run(
        [node, "mermaid.mjs"],
        cwd=JAVASCRIPT,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return list(json.loads(found.stdout))


def report(words: str) -> Report:
    claims = tuple(Claim(words, ("1",), 1, "supported") for _ in range(4))
    sections = (Section(words, claims), Section("Features", claims[:1]))
    return Report("p1", words, words, "c", "d", "completed", sections)


def test_every_diagram_is_read_by_mermaid() -> None:
    texts = [text for words in ("Skarra", *HOSTILE) for text in diagrams(report(words))]
    assert len(texts) >= 2 * (1 + len(HOSTILE))
    # The last one shows that the parser refuses what is no diagram.
    *found, refused = errors([*texts, 'flowchart LR\n    a["x" --> b'])
    assert [pair for pair in zip(texts, found, strict=True) if pair[1] is not None] == []
    assert refused is not None
