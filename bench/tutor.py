"""`python -m bench.tutor`: measure the tutor's checks without a model.

The corpus of `bench/learners` has sentences with marked mistakes, and correct ones. An edit counts
as right if the same words change in the same way. The part that is held out is printed apart.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

from bench.learners.corpus import Edit, Sentence, right, smallest, split, wrong
from bench.report import Line, table
from my_agent.tutor.corrections import Issue, apply

# What the checks without a model must reach.
PRECISION, RECALL, CHANGED = 0.95, 0.6, 0.01

Check = Callable[[str], list[Issue]]


@dataclass
class Figures:
    """Counts of one part of the corpus."""

    edits: int = 0
    good_edits: int = 0
    marked: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    correct: int = 0
    changed: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """The share of edits that are right, of those in the sentences with mistakes."""
        return self.good_edits / self.edits if self.edits else 1.0

    @property
    def recall(self) -> float:
        """The share of marked mistakes that are corrected."""
        return self.found.total() / self.marked.total()

    @property
    def changed_share(self) -> float:
        """The share of correct sentences that are changed."""
        return len(self.changed) / self.correct


def measure(check: Check, wrongs: Sequence[Sentence], rights: Sequence[Sentence]) -> Figures:
    """Check all sentences and compare the edits."""
    figures = Figures(correct=len(rights))
    for sentence in wrongs:
        _compare(figures, sentence, check(sentence.text))
    for sentence in rights:
        for issue in (found := check(sentence.text))[:1]:
            shown = "; ".join(f"{i['original']} -> {i['replacement']}" for i in found)
            figures.changed.append(f"{sentence.text}  [{shown}] {issue['message']}")
    return figures


def _compare(figures: Figures, sentence: Sentence, issues: Sequence[Issue]) -> None:
    text, gold = sentence.text, sentence.edits()
    # Sentences that become one of the right ones are right, however the change is cut into edits.
    is_right = bool(gold) and _words(apply(text, issues)) in {
        _words(_remedied(sentence, remedies))
        for remedies in product(*(each.remedies for each in sentence.mistakes))
    }
    for issue in issues:
        edit = smallest(text, Edit(issue["start"], issue["end"], issue["replacement"]))
        figures.edits += 1
        if is_right or any(edit in remedies for _, remedies in gold):
            figures.good_edits += 1
        else:
            figures.bad.append(f"{text}  [{issue['original']} -> {issue['replacement']}]")
    made = {smallest(text, Edit(i["start"], i["end"], i["replacement"])) for i in issues}
    for mistake, remedies in gold:
        figures.marked[mistake.type] += 1
        if is_right or made & remedies:
            figures.found[mistake.type] += 1
        else:
            wrong_words = text[mistake.start : mistake.end]
            figures.missed.append(f"{mistake.type}: {text}  [{wrong_words}]")


def _remedied(sentence: Sentence, remedies: Sequence[str]) -> str:
    text = sentence.text
    for mistake, remedy in reversed(list(zip(sentence.mistakes, remedies, strict=True))):
        text = text[: mistake.start] + remedy + text[mistake.end :]
    return text


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def parts(check: Check) -> dict[str, Figures]:
    """Return the figures of the sentences in view, of those held out, and of all."""
    measured = {
        name: measure(check, split(wrong(), held_out=held), split(right(), held_out=held))
        for name, held in (("in view", False), ("held out", True))
    }
    measured["all"] = measure(check, wrong(), right())
    return measured


def lines(name: str, figures: Figures, *, owed: bool) -> list[Line]:
    """Return the rows of the table for one part."""
    limits = (PRECISION, RECALL, CHANGED) if owed else (None, None, None)
    return [
        Line(f"precision, {name}", figures.precision, "", limit=limits[0], better="higher"),
        Line(f"recall, {name}", figures.recall, "", limit=limits[1], better="higher"),
        Line(f"correct sentences changed, {name}", figures.changed_share, "", limit=limits[2]),
    ]


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if a figure is outside its bound."""
    from my_agent.tutor import checks

    parser = argparse.ArgumentParser(prog="python -m bench.tutor", description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the sentences in view that fail")
    options = parser.parse_args()
    measured = parts(checks.check)
    rows = [line for name, each in measured.items() for line in lines(name, each, owed=True)]
    for kind in sorted(measured["all"].marked):
        each = measured["all"], measured["held out"]
        found = [f"{part.found[kind]}/{part.marked[kind]}" for part in each]
        print(f"recall of {kind}: {found[0]}, of those held out {found[1]}")
    print(table(rows))
    print(
        f"{len(wrong())} sentences with mistakes, {len(right())} correct; every third is held out"
    )
    if options.show:
        shown = measured["in view"]
        for title, texts in (
            ("wrong", shown.bad),
            ("changed", shown.changed),
            ("missed", shown.missed),
        ):
            print(*(f"{title}: {text}" for text in texts), sep="\n")
    return 0 if all(line.holds for line in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
