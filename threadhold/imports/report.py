"""Report: what an import found, and what became of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

KINDS = ("assistants", "threads", "checkpoints", "store items", "crons")


@dataclass
class Report:
    """The counts of an import.

    Attributes:
        found: What the source has, by kind.
        imported: What was written, by kind; in a dry run what would be.
        left_out: Why something was not imported, with how often.
    """

    found: Counter[str] = field(default_factory=Counter)
    imported: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, *, found: int = 1, imported: int) -> None:
        """Count some of a kind."""
        self.found[kind] += found
        self.imported[kind] += imported

    def lines(self, verb: str = "imported") -> Iterator[str]:
        """Yield the result for people: a line for each kind, and for each reason.

        Args:
            verb: What was done with them.
        """
        for kind in KINDS:
            found, imported = self.found[kind], self.imported[kind]
            there = f", {found - imported:,} were there already" if found > imported else ""
            yield f"{kind}: {found:,} found, {imported:,} {verb}{there}"
        for reason, count in self.left_out.items():
            yield f"Left out, {count:,} times: {reason}"
