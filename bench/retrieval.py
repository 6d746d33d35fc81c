"""`python -m bench.retrieval`: measure how well questions find the passage that answers them.

The corpus of this folder has questions with known answers. recall@6 is the share of questions whose
answers are among the first six passages, which the model reads. MRR is the mean of 1 / rank of the
answer. The made corpus (`bench/made.py`) has five kinds of questions; a false answer is a passage
for a question that the corpus does not answer.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from bench import factbook, made
from bench.question import Question
from bench.report import Line, table
from my_agent import database, embedding
from my_agent.chat.documents import index, keywords, ranking
from my_agent.chat.documents.ingestion import ingest
from my_agent.chat.documents.search import DEPTH, candidates
from my_agent.chat.documents.vectors import VectorCache, nearest
from my_agent.chat.tables import SHARED
from my_agent.embedding import Vectors

CORPUS = Path(__file__).parent / "corpus"
FIRST = 6
# Required recall of the shipped corpus: a change that makes the search worse fails here.
OWED = 0.9
# Required recall on the made corpus by kind, and the false answers that are allowed.
OWED_MADE = {"literal": 0.97, "paraphrase": 0.95, "comparison": 0.95, "identifier": 0.97}
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
    found, nearness = candidates(connection, _CACHE, question, vector, SHARED)
    return ranking.rank(question, found, nearness, FIRST)


METHODS: dict[str, Search] = {"keyword": by_words, "vector": by_meaning, "hybrid": by_both}
_CACHE = VectorCache(2**28)


def measure(documents: Path, questions: Sequence[Question]) -> dict[str, Figures]:
    """Ingest a folder into a new database and ask all questions."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        database.use(f"sqlite:///{scratch}/data.db")
        try:
            ingest(documents, SHARED)
            vectors = [embedding.of_question(each.question) for each in questions]
            with database.database().read(SHARED) as connection:
                return {
                    method: _figures(
                        [
                            _place(connection, search(connection, each.question, vector), each)
                            for each, vector in zip(questions, vectors, strict=True)
                        ]
                    )
                    for method, search in METHODS.items()
                }
        finally:
            database.close()
            database.use(None)


def measure_made(seed: int, records: int) -> list[Line]:
    """Ingest the made corpus into a new database, ask all questions and return the rows."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        (folder := Path(scratch) / "documents").mkdir()
        asked = made.write(folder, seed=seed, records=records)
        database.use(f"sqlite:///{scratch}/data.db")
        try:
            ingest(folder, SHARED)
            vectors = [embedding.of_question(each.question) for each in asked]
            with database.database().read(SHARED) as connection:
                right = [
                    (each.kind, _is_right(connection, each, by_both(connection, each.question, v)))
                    for each, v in zip(asked, vectors, strict=True)
                ]
        finally:
            database.close()
            database.use(None)
    rows = []
    for kind in made.KINDS:
        of_kind = [is_right for each, is_right in right if each == kind]
        share = sum(of_kind) / len(of_kind)
        if kind == "no answer":
            rows.append(
                Line(f"false answers, made corpus, {kind}", 1 - share, "", limit=MOST_FALSE)
            )
        else:
            name = f"recall@{FIRST}, made corpus, {kind}"
            rows.append(Line(name, share, "", limit=OWED_MADE[kind], better="higher"))
    return rows


def _is_right(connection: Connection, asked: made.Asked, ids: Sequence[int]) -> bool:
    """Return whether each answer is among the passages; without answers, whether none is found."""
    texts = [each.text for each in index.fetch(connection, SHARED, ids).values()]
    if not asked.answers:
        return not texts
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
    found += measure_made(options.seed, options.records)
    sizes.append(f"made corpus: seed {options.seed}, {options.records} records")
    if options.factbook:
        with tempfile.TemporaryDirectory(prefix="factbook-") as folder:
            asked = factbook.write(Path(folder))
            found += lines("World Factbook", measure(Path(folder), asked))
        sizes.append(f"World Factbook: {len(asked)} questions")
    print(table(found))
    print("; ".join(sizes))
    return 0 if all(line.holds for line in found) else 1


if __name__ == "__main__":
    sys.exit(main())
