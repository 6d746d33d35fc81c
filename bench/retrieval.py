"""`python -m bench.retrieval`: measure how well questions find the passage that answers them.

The corpus of this folder has questions with known answers. recall@6 is the share of questions whose
answers are among the first six passages, which the model reads. MRR is the mean of 1 / rank of the
answer. Documents with five kinds of questions are made (`bench/made.py`), in view, or held out: the
bounds of the ranking were chosen without the last. A false answer is a passage that the search is
sure of, for a question that the documents do not answer.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from bench import factbook, made
from bench.made import Asked
from bench.question import Question
from bench.report import Line, table
from my_agent import embedding
from my_agent.chat.documents import background, index, keywords, ranking
from my_agent.chat.documents.ingestion import ingest
from my_agent.chat.documents.search import DEPTH, candidates
from my_agent.chat.documents.vectors import VectorCache, nearest
from my_agent.embedding import Vectors
from tests.support.products import engine, using
from threadhold.tables import SHARED

CORPUS = Path(__file__).parent / "corpus"
IN_VIEW = Path(__file__).parent / "in_view"
HELD_OUT = Path(__file__).parent / "held_out"
FIRST = 6
# Required recall of the shipped corpus: a change that makes the search worse fails here.
OWED = 0.9
# Required recall by kind of question, and the false answers that are allowed.
OWED_BY_KIND = {"literal": 0.97, "paraphrase": 0.95, "comparison": 0.95, "identifier": 0.97}
MOST_FALSE = 0.05


@dataclass(frozen=True)
class Figures:
    """The result of one search method."""

    recall: float
    mrr: float


Search = Callable[[Connection, str, Vectors], Sequence[int]]


def by_words(connection: Connection, question: str, vector: Vectors) -> Sequence[int]:
    return keywords.find(connection, question, SHARED, DEPTH)


def by_meaning(connection: Connection, question: str, vector: Vectors) -> Sequence[int]:
    return nearest(connection, _CACHE, vector, SHARED, DEPTH)


def by_both(connection: Connection, question: str, vector: Vectors) -> Sequence[int]:
    return ranked(connection, question, vector).ids


def ranked(connection: Connection, question: str, vector: Vectors) -> ranking.Ranked:
    """Return the result of the shipped search."""
    found, held = candidates(connection, _CACHE, question, vector, SHARED)
    return ranking.rank(question, found, background.nearness(vector, held), FIRST)


METHODS: dict[str, Search] = {"keyword": by_words, "vector": by_meaning, "hybrid": by_both}
_CACHE = VectorCache(2**28)


def measure(documents: Path, questions: Sequence[Question]) -> dict[str, Figures]:
    """Ingest a folder into a new database and ask all questions."""
    with _ingested(documents, questions) as (connection, vectors):
        return {
            method: _figures(
                [
                    _place(connection, search(connection, each.question, vector), each)
                    for each, vector in zip(questions, vectors, strict=True)
                ]
            )
            for method, search in METHODS.items()
        }


@contextmanager
def _ingested(
    documents: Path, questions: Sequence[Question | Asked]
) -> Iterator[tuple[Connection, list[Vectors]]]:
    """Ingest a folder into a new database. Yield a connection and the vectors of the questions."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as scratch,
        using(f"sqlite:///{scratch}/data.db"),
    ):
        ingest(documents, SHARED)
        vectors = [embedding.of_question(each.question) for each in questions]
        with engine().reading(SHARED) as connection:
            yield connection, vectors


def measure_made(seed: int, records: int) -> tuple[list[Line], list[Asked]]:
    """Ingest the made corpus and ask all questions. Return the rows and what failed."""
    with tempfile.TemporaryDirectory(prefix="made-") as folder:
        asked = made.write(Path(folder), seed=seed, records=records)
        return measure_kinds("made corpus", Path(folder), asked)


def measure_kinds(
    name: str, documents: Path, asked: Sequence[Asked], *, bounded: bool = True
) -> tuple[list[Line], list[Asked]]:
    """Ingest a folder into a new database and ask all questions.

    Args:
        name: of the documents, for the rows.
        documents: the folder.
        asked: the questions.
        bounded: whether a figure outside of its bound is a failure.

    Returns:
        Two rows for each kind of question, and the questions without the right result.
    """
    right, sure = set[Asked](), set[Asked]()
    with _ingested(documents, asked) as (connection, vectors):
        for each, vector in zip(asked, vectors, strict=True):
            result = ranked(connection, each.question, vector)
            if result.sure:
                sure.add(each)
            if _is_right(connection, each, result):
                right.add(each)
    rows = []
    for kind in made.KINDS:
        of = [each for each in asked if each.kind == kind]
        good = sum(each in right for each in of) / len(of)
        certain = sum(each in sure for each in of) / len(of)
        if kind == "no answer":
            limit = MOST_FALSE if bounded else None
            rows.append(Line(f"false answers, {name}", 1 - good, "", limit=limit))
        else:
            bound = OWED_BY_KIND[kind] if bounded else None
            row = f"recall@{FIRST}, {name}, {kind}"
            rows.append(Line(row, good, "", limit=bound, better="higher"))
            rows.append(Line(f"sure, {name}, {kind}", certain, "", better="higher"))
    return rows, [each for each in asked if each not in right]


def _is_right(connection: Connection, asked: Asked, result: ranking.Ranked) -> bool:
    """Return whether each answer is among the passages; without answers, whether none is sure."""
    if not asked.answers:
        return not result.sure
    found = index.fetch(connection, SHARED, result.ids).values()
    texts = [" ".join(each.text.split()) for each in found]
    return all(any(all(word in text for word in pair) for text in texts) for pair in asked.answers)


def _place(connection: Connection, ids: Sequence[int], question: Question) -> int | None:
    found = index.fetch(connection, SHARED, ids)
    right = (place for place, each in enumerate(ids, 1) if question.is_answered_by(found[each]))
    return next(right, None)


def _figures(places: Sequence[int | None]) -> Figures:
    within = [place for place in places if place is not None and place <= FIRST]
    worth = [1 / place for place in places if place is not None]
    return Figures(len(within) / len(places), sum(worth) / len(places))


def lines(name: str, found: dict[str, Figures], owed: float | None = None) -> list[Line]:
    """Return the rows of the table."""
    rows = []
    for method, figures in found.items():
        limit = owed if method == "hybrid" else None
        rows.append(
            Line(f"recall@6, {name}, {method}", figures.recall, "", limit=limit, better="higher")
        )
        rows.append(Line(f"MRR, {name}, {method}", figures.mrr, "", better="higher"))
    return rows


def questions() -> list[Question]:
    """Return the questions of the shipped corpus."""
    asked = json.loads((CORPUS / "questions.json").read_text(encoding="utf-8"))
    return [Question(each["question"], each["answer"]) for each in asked]


def kinds(folder: Path) -> list[Asked]:
    """Return the questions of a folder, with their kinds."""
    asked = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    return [Asked(each["kind"], each["question"], _pairs(each["answers"])) for each in asked]


def _pairs(answers: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(each) for each in answers)


def main() -> int:
    """Run the measurement. Return the exit status: 0, or 1 if the recall is below the bound."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument(
        "--factbook",
        action="store_true",
        help="also measure the World Factbook; see bench/factbook.py",
    )
    parser.add_argument("--seed", type=int, default=made.SEED, help="of the made corpus")
    parser.add_argument("--records", type=int, default=made.RECORDS, help="of the made corpus")
    options = parser.parse_args()
    asked = questions()
    found = lines("our corpus", measure(CORPUS / "documents", asked), owed=OWED)
    sizes = [f"our corpus: {len(asked)} questions"]
    wrong = list[Asked]()
    for name, place in (("in view", IN_VIEW), ("held out", HELD_OUT)):
        asked_here = kinds(place)
        rows, missed = measure_kinds(name, place / "documents", asked_here)
        found += rows
        wrong += missed
        sizes.append(f"{name}: {len(asked_here)} questions")
    rows, wrong_made = measure_made(options.seed, options.records)
    found += rows
    sizes.append(f"made corpus: seed {options.seed}, {options.records} records")
    if options.factbook:
        with tempfile.TemporaryDirectory(prefix="factbook-") as folder:
            asked = factbook.write(Path(folder))
            found += lines("World Factbook", measure(Path(folder), asked))
        sizes.append(f"World Factbook: {len(asked)} questions")
    print(table(found))
    print("; ".join(sizes))
    for each in [*wrong, *wrong_made]:
        print(f"missed ({each.kind}): {each.question}")
    return 0 if all(line.holds for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
