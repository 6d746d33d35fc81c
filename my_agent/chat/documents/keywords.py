"""Keywords: find passages by the words of a question, with SQLite's full-text search here."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from my_agent.chat.documents import postgres_words
from my_agent.chat.documents.words import content_words, words

# Limits the query if a long text is pasted instead of a question.
MOST_WORDS = 32
# A word in more passages than this is common: to rank all of them takes too long, and says little.
COMMON = 1_000

_SQLITE = (
    # The index stores only words; titles and texts stay in the table. The stemmer is the English
    # one, which also handles Portuguese plurals well enough.
    """CREATE VIRTUAL TABLE chat_passage_words USING fts5(
        title, section, text, content='chat_passage', content_rowid='passage_id',
        tokenize='porter unicode61 remove_diacritics 2')""",
    """CREATE TRIGGER chat_passage_added AFTER INSERT ON chat_passage BEGIN
        INSERT INTO chat_passage_words (rowid, title, section, text)
        VALUES (new.passage_id, new.title, new.section, new.text);
    END""",
    """CREATE TRIGGER chat_passage_removed AFTER DELETE ON chat_passage BEGIN
        INSERT INTO chat_passage_words (chat_passage_words, rowid, title, section, text)
        VALUES ('delete', old.passage_id, old.title, old.section, old.text);
    END""",
)
_FIND_SQLITE = text(
    """SELECT p.passage_id FROM chat_passage_words
    JOIN chat_passage AS p ON p.passage_id = chat_passage_words.rowid
    WHERE chat_passage_words MATCH :words AND p.tenant_id IN (:tenant, '')
    ORDER BY bm25(chat_passage_words, 2.0, 1.5, 1.0), p.passage_id LIMIT :most"""
)

_ACCENTED, _PLAIN = "áàâãäéèêëíìîïóòôõöúùûüçñ", "aaaaaeeeeiiiiooooouuuucn"
# Only constants and immutable functions, so that an index can be built on the expression.
_VECTOR = "to_tsvector('english', translate(lower({}), '{}', '{}'))"
_TITLES = _VECTOR.format("title || ' ' || section", _ACCENTED, _PLAIN)
_TEXT = _VECTOR.format("text", _ACCENTED, _PLAIN)
_WEIGHTED = f"(setweight({_TITLES}, 'A') || setweight({_TEXT}, 'D'))"
_POSTGRES = (f"CREATE INDEX chat_passage_words ON chat_passage USING gin ({_WEIGHTED})",)
# It stops at the limit. SQLite's index of words knows no tenant.
_COUNT_SQLITE = text(
    """SELECT count(*) FROM (
        SELECT 1 FROM chat_passage_words WHERE chat_passage_words MATCH :words LIMIT :most)"""
)


def create(connection: Connection) -> None:
    """Create the full-text index of the passages. Called by the migration."""
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRES:
        connection.exec_driver_sql(statement)


def find(connection: Connection, question: str, tenant: str, most: int) -> Sequence[int]:
    """Return ids of passages that contain words of the question, best first.

    Args:
        connection: in any transaction of the tenant.
        question: any text; it is never parsed as a query with operators.
        tenant: the tenant whose passages are searched, besides the shared ones.
        most: maximum number of ids.
    """
    wanted = (content_words(question) or words(question))[:MOST_WORDS]
    if not wanted:
        return []
    if connection.dialect.name != "sqlite":
        return postgres_words.find(connection, wanted, tenant, most, COMMON)
    query = _selective(connection, wanted)
    if not query:
        return []
    parameters = {"words": query, "tenant": tenant, "most": most}
    return [int(row[0]) for row in connection.execute(_FIND_SQLITE, parameters)]


def _selective(connection: Connection, wanted: Sequence[str]) -> str:
    """Return a query for passages with any word that is not common.

    If all words are common, the query is for passages with all of them. It is empty if these are
    too many as well.
    """
    words = [f'"{word}"' for word in wanted]
    rare = [word for word in words if not _is_common(connection, word)]
    if rare:
        return " OR ".join(rare)
    together = " AND ".join(words)
    return "" if _is_common(connection, together) else together


def _is_common(connection: Connection, query: str) -> bool:
    found = connection.scalar(_COUNT_SQLITE, {"words": query, "most": COMMON + 1})
    return int(found or 0) > COMMON
