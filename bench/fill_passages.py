"""Fill a database with made passages and vectors, many times faster than an ingestion."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from sqlalchemy import Connection

from my_agent.chat.documents import index
from my_agent.chat.documents.chunking import Passage
from my_agent.embedding import DIMENSIONS, Vectors, to_bytes
from my_agent.tables import tables

TENANT = "bench"
SEED = 11
_PART = 4_000
_TOPICS, _VOCABULARY, _WORDS, _IN_DOCUMENT = 2_000, 20_000, 40, 200
_COLUMNS = ("tenant_id", "document_id", "number", "title", "section", "text", "vector")


class Maker:
    """Makes passages of random words, with vectors around random topics.

    Args:
        seed: of all random numbers.
    """

    def __init__(self, seed: int) -> None:
        topics = np.random.default_rng(SEED).normal(size=(_TOPICS, DIMENSIONS))
        self._topics = topics.astype("f4")
        self._rng = np.random.default_rng(seed)

    def vectors(self, count: int) -> Vectors:
        """Return vectors near random topics, one in each row."""
        noise = self._rng.standard_normal((count, DIMENSIONS), "f4") / 2
        made = self._topics[self._rng.integers(_TOPICS, size=count)] + noise
        vectors: Vectors = made / np.linalg.norm(made, axis=1, keepdims=True)
        return vectors

    def texts(self, count: int, words: int = _WORDS) -> list[str]:
        """Return texts of words, of which low numbers are common and high ones rare."""
        numbers: NDArray[Any] = np.minimum(self._rng.zipf(1.3, (count, words)), _VOCABULARY)
        return [" ".join(f"word{number}" for number in row) for row in numbers]

    def store(self, name: str, count: int) -> None:
        """Store a document with `count` passages, as an ingestion does."""
        passages = [
            Passage(number, name, "", text) for number, text in enumerate(self.texts(count), 1)
        ]
        made = dict(zip(passages, self.vectors(count), strict=True))
        tables.write(lambda connection: index.add(connection, TENANT, name, name, made), TENANT)

    def rows(self, count: int) -> Iterator[tuple[Any, ...]]:
        """Yield rows of the table of passages, in documents of `_IN_DOCUMENT`."""
        for number in range(count // _IN_DOCUMENT):
            name = f"document {number}"
            texts, vectors = self.texts(_IN_DOCUMENT), self.vectors(_IN_DOCUMENT)
            for place, (text, vector) in enumerate(zip(texts, vectors, strict=True), 1):
                yield (TENANT, name, place, name, "", text, to_bytes(vector))


def fill(maker: Maker, passages: int, owner: str | None) -> None:
    """Fill the database in use.

    Args:
        maker: makes the passages.
        passages: how many.
        owner: the superuser's URL to the same Postgres database; None on SQLite.
    """
    # It makes the tables, and the version of the index.
    maker.store("first", 1)
    documents = [(f"document {each}", TENANT) for each in range(passages // _IN_DOCUMENT)]
    if owner is None:
        _fill_sqlite(documents, maker.rows(passages))
    else:
        _fill_postgres(owner, documents, maker.rows(passages))


def _fill_sqlite(documents: list[tuple[str, str]], rows: Iterator[tuple[Any, ...]]) -> None:
    def fill(connection: Connection) -> None:
        raw: Any = connection.connection.cursor()
        raw.executemany("INSERT INTO chat_document VALUES (?, ?, 'made ' || ?1)", documents)
        marks = ", ".join("?" * len(_COLUMNS))
        columns = ", ".join(_COLUMNS)
        raw.executemany(f"INSERT INTO chat_passage ({columns}) VALUES ({marks})", rows)

    tables.write(fill, TENANT)


def _fill_postgres(
    owner: str, documents: list[tuple[str, str]], rows: Iterator[tuple[Any, ...]]
) -> None:
    with psycopg.connect(owner) as raw, raw.cursor() as cursor:
        # Building the index at once is faster. The tables belong to another role.
        cursor.execute("DROP INDEX ix_chat_word, ix_chat_word_document")
        with cursor.copy("COPY chat_document (document_id, tenant_id, digest) FROM STDIN") as copy:
            for name, tenant in documents:
                copy.write_row((name, tenant, f"made {name}"))
        columns = ", ".join(_COLUMNS)
        # In parts, whose words Postgres groups in memory.
        while part := list(islice(rows, _PART)):
            with cursor.copy(f"COPY chat_passage ({columns}) FROM STDIN") as copy:
                for row in part:
                    copy.write_row(row)
    with psycopg.connect(owner, autocommit=True) as raw:
        raw.execute("CREATE INDEX ix_chat_word ON chat_word (tenant_id, word)")
        raw.execute("CREATE INDEX ix_chat_word_document ON chat_word (document_id)")
        raw.execute("VACUUM ANALYZE")
