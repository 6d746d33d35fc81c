"""The words of passages on Postgres: a table that row-level security lets an index serve.

A policy compares the tenant of each row before any operator that is not leakproof. `@@` is not, so
Postgres would use no full-text index. `=` of texts is leakproof. So each row has one word of one
document, with the passages that contain it, and is found by a plain index.
"""

import math
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, text

from threadhold.tables import secure

# Most rows of the words of a question, if all its words are common. More take too long.
MOST_ROWS = 10_000

_ACCENTED, _PLAIN = "áàâãäéèêëíìîïóòôõöúùûüçñ", "aaaaaeeeeiiiiooooouuuucn"
# Postgres takes `E-04` for a word and a negative number, and `a.b` for a host.
_SIGNS = "-/._:,;()+#\u2013\u2014\u2019"
_LEXEMES = f"to_tsvector('english', translate(lower({{}}), '{_ACCENTED}{_SIGNS}', '{_PLAIN}{' ' * len(_SIGNS)}'))"
_TITLES = _LEXEMES.format("p.title || ' ' || p.section")
_TEXT = _LEXEMES.format("p.text")
_WEIGHTED = f"setweight({_TITLES}, 'A') || setweight({_TEXT}, 'D')"
# As BM25 weighs a word in a passage: repetitions count less and less, and less in a long passage.
# A word of the title counts twice.
_TIMES = "(cardinality(positions) + ('A' = ANY (weights))::integer)"
_FILL = f"""INSERT INTO chat_word (tenant_id, word, document_id, passage_ids, weights)
    SELECT tenant_id, lexeme, document_id, array_agg(passage_id),
        array_agg((2.2 * {_TIMES} / ({_TIMES} + 0.3 + 0.9 * length(words) / 40.0))::real)
    FROM (SELECT p.tenant_id, p.document_id, p.passage_id, {_WEIGHTED} AS words FROM {{}} AS p) AS q,
        LATERAL unnest(words)
    GROUP BY tenant_id, lexeme, document_id"""
_CREATE = (
    """CREATE TABLE chat_word (
        tenant_id text NOT NULL, word text NOT NULL,
        document_id text NOT NULL REFERENCES chat_document ON DELETE CASCADE,
        passage_ids integer[] NOT NULL, weights real[] NOT NULL)""",
    # A trigger, because an older process or a move inserts passages too.
    f"""CREATE FUNCTION chat_add_words() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        {_FILL.format("added")};
        RETURN NULL; END $$""",
    """CREATE TRIGGER chat_passage_added AFTER INSERT ON chat_passage
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION chat_add_words()""",
    _FILL.format("chat_passage"),
    "CREATE INDEX ix_chat_word ON chat_word (tenant_id, word)",
    "CREATE INDEX ix_chat_word_document ON chat_word (document_id)",
    "DROP INDEX chat_passage_words",
)

_LEXEMES_OF = text(f"SELECT lexeme FROM unnest({_LEXEMES.format(':words')})")
_COUNT = text(
    """SELECT asked.word, (
        SELECT coalesce(sum(cardinality(passage_ids)), 0) FROM (
            SELECT passage_ids FROM chat_word
            WHERE tenant_id IN (:tenant, '') AND word = asked.word LIMIT :rows) AS counted)
    FROM unnest(CAST(:words AS text[])) AS asked (word)"""
)
_FIND = text(
    """SELECT passage_id FROM chat_word
        JOIN unnest(CAST(:words AS text[]), CAST(:worths AS real[])) AS asked (lexeme, worth)
            ON lexeme = word,
        LATERAL unnest(passage_ids, weights) AS held (passage_id, weight)
    WHERE tenant_id IN (:tenant, '') AND word = ANY (CAST(:words AS text[]))
    GROUP BY passage_id HAVING count(*) >= :least
    ORDER BY sum(weight * worth) DESC, passage_id LIMIT :most"""
)


def create(connection: Connection) -> None:
    """Create and fill the table of words. Called by the migration."""
    for statement in _CREATE:
        connection.exec_driver_sql(statement)
    secure(connection, "chat_word")


def find(
    connection: Connection, words: Sequence[str], tenant: str, most: int, common: int
) -> list[int]:
    """Return ids of passages with any word that is not common, best first.

    If all words are common, the passages have all of them; none if these words are in more than
    `MOST_ROWS` rows.

    Args:
        connection: in a transaction of the tenant.
        words: the words of a question.
        tenant: the tenant whose passages are searched, besides the shared ones.
        most: maximum number of ids.
        common: a word in more passages is common.
    """
    lexemes = list(connection.scalars(_LEXEMES_OF, {"words": " ".join(words)}))
    if not lexemes:
        return []
    counts = _counts(connection, lexemes, tenant, common + 1)
    rare = {word: count for word, count in counts.items() if 0 < count <= common}
    if rare:
        return _found(connection, rare, tenant, most, least=1)
    if not all(counts.values()):
        return []
    counts = _counts(connection, lexemes, tenant, MOST_ROWS)
    if sum(counts.values()) > MOST_ROWS:
        return []
    return _found(connection, counts, tenant, most, least=len(counts))


def _counts(
    connection: Connection, lexemes: Sequence[str], tenant: str, rows: int
) -> dict[str, int]:
    """Return in how many passages each word is, counted in up to `rows` rows."""
    asked = {"words": list(lexemes), "tenant": tenant, "rows": rows}
    return {word: int(count) for word, count in connection.execute(_COUNT, asked)}


def _found(
    connection: Connection, counts: Mapping[str, int], tenant: str, most: int, least: int
) -> list[int]:
    asked = {
        "words": list(counts),
        # The rarer a word, the more it says.
        "worths": [1 / math.log(2 + count) for count in counts.values()],
        "tenant": tenant,
        "least": least,
        "most": most,
    }
    return [int(each) for each in connection.scalars(_FIND, asked)]
