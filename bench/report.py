"""A line per comparison, the table, and the result section of README.md."""

import os
import platform
import sqlite3
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- result: begin -->", "<!-- result: end -->"
PACKAGES = ("langgraph-api", "langgraph", "langgraph-runtime-inmem", "langgraph-checkpoint-sqlite")
HEADER = ("measure", "ours", "peer", "ours / peer", "owed", "")


@dataclass(frozen=True)
class Line:
    """One figure of our server, with a peer's figure if there is one.

    `limit` is the bound: of ours / peer with a peer, of the figure itself without one; None for
    figures without a bound. `unit` is a suffix such as "ms" or "runs/s".
    """

    measure: str
    ours: float
    unit: str
    peer: float | None = None
    peer_name: str = ""
    limit: float | None = None
    better: Literal["lower", "higher"] = "lower"

    @property
    def judged(self) -> float:
        return self.ours if self.peer is None else self.ours / self.peer

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.judged <= self.limit if self.better == "lower" else self.judged >= self.limit

    def cells(self) -> tuple[str, ...]:
        peer = f"{_figure(self.peer)} {self.unit} ({self.peer_name})" if self.peer else ""
        ratio = _ratio(self.judged) if self.peer else ""
        return (
            self.measure,
            f"{_figure(self.ours)} {self.unit}",
            peer,
            ratio,
            self._owed(),
            "" if self.limit is None else "pass" if self.holds else "**FAIL**",
        )

    def _owed(self) -> str:
        if self.limit is None:
            return ""
        sign = "<=" if self.better == "lower" else ">="
        return f"{sign} {_ratio(self.limit) if self.peer else f'{self.limit:g} {self.unit}'}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(value: float) -> str:
    return f"1/{1 / value:.1f}".removesuffix(".0") if 0 < value <= 0.2 else f"{value:.2f} x"


def table(lines: list[Line]) -> str:
    """Format a Markdown table, padded so that it is aligned in a terminal."""
    rows = [HEADER, *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    text = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text[0], rule, *text[1:]])


def machine() -> str:
    """Describe hardware and versions that the figures depend on, and nothing that identifies the
    machine.
    """
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}; {packages}"
    )


def write(text: str, readme: Path = README) -> None:
    """Replace the text between the markers.

    Raises:
        ValueError: a marker is missing.
    """
    old = readme.read_text()
    head, begin, rest = old.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme.name} has no {BEGIN} ... {END}")
    readme.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")
