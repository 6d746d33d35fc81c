"""`python -m bench.icp industries`: measure how well phrases are mapped to industries.

`industries.csv` has phrases as people write them, each with the codes that a person accepts. A phrase
is right if the best code is an accepted one, a part of it, or its division. The words of the table
were chosen with these phrases in sight; `industries_unseen.csv` has others, which were written after
that and not used for it.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from bench.report import Line
from my_agent.companies import ssic

PHRASES = Path(__file__).parent / "industries.csv"
UNSEEN = Path(__file__).parent / "industries_unseen.csv"
# Required share of right phrases: a change that makes the mapping worse fails here.
OWED = 0.85


@dataclass(frozen=True)
class Answer:
    """The industry that a phrase was mapped to.

    Attributes:
        phrase: the phrase.
        accepted: the codes that a person accepts.
        code: the best code; empty if none was found.
    """

    phrase: str
    accepted: tuple[str, ...]
    code: str

    @property
    def is_right(self) -> bool:
        """Return whether the code is accepted, a part of an accepted one, or its division."""
        return any(
            self.code.startswith(each) or (len(self.code) >= 2 and each.startswith(self.code))
            for each in self.accepted
        )


def answers(path: Path = PHRASES) -> list[Answer]:
    """Map the phrases of a file.

    Args:
        path: a CSV file with the columns `phrase` and `codes`, separated by `|`.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["phrase"], tuple(row["codes"].split("|"))) for row in csv.DictReader(file)]
    found = [(phrase, accepted, ssic.find(phrase, limit=1)) for phrase, accepted in rows]
    return [
        Answer(phrase, accepted, best[0].code if best else "") for phrase, accepted, best in found
    ]


def share(found: list[Answer]) -> float:
    """Return the share of right answers."""
    return sum(each.is_right for each in found) / len(found)


def lines() -> list[Line]:
    """Print the wrong phrases, and return the shares of right ones."""
    found = []
    for path in (PHRASES, UNSEEN):
        all_ = answers(path)
        for each in all_:
            if not each.is_right:
                title = ssic.title(each.code) if each.code else "nothing"
                print(f"{each.phrase}: {each.code} {title}, not {' or '.join(each.accepted)}")
        name = f"industries of {len(all_)} phrases of {path.name}"
        found.append(Line(name, share(all_), "", limit=OWED, better="higher"))
    return found
