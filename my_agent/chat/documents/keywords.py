"""Keywords: find passages by the words of a question with the database's full-text search.

All code that differs between SQLite and Postgres is in this module.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from my_agent.chat.documents.words import content_words, words

# Limits the query if a long text is pasted instead of a question.
MOST_WORDS = 32
# A word in more passages than this is common: to rank all of them takes too long, and says little.
# Postgres computes the words of each ranked passage again.
COMMON = {"sqlite": 1_000, "postgresql": 400}

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
_FIND_POSTGRES = text(
    f"""SELECT passage_id FROM chat_passage,
        to_tsquery('english', translate(lower(:words), '{_ACCENTED}', '{_PLAIN}')) AS query
    WHERE {_WEIGHTED} @@ query AND tenant_id IN (:tenant, '')
    ORDER BY ts_rank('{{0.5, 0.5, 0.5, 1.0}}', {_WEIGHTED}, query, 1) DESC, passage_id
    LIMIT :most"""
)

# They stop at the limit.
_COUNT_SQLITE = text(
    """SELECT count(*) FROM (
        SELECT 1 FROM chat_passage_words WHERE chat_passage_words MATCH :words LIMIT :most)"""
)
_COUNT_POSTGRES = text(
    f"""SELECT count(*) FROM (
        SELECT 1 FROM chat_passage WHERE {_WEIGHTED} @@
            to_tsquery('english', translate(lower(:words), '{_ACCENTED}', '{_PLAIN}'))
        LIMIT :most) AS found"""
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
    query = _selective(connection, wanted)
    if not query:
        return []
    find = _FIND_SQLITE if connection.dialect.name == "sqlite" else _FIND_POSTGRES
    parameters = {"words": query, "tenant": tenant, "most": most}
    return [int(row[0]) for row in connection.execute(find, parameters)]


def _selective(connection: Connection, wanted: Sequence[str]) -> str:
    """Return a query for passages with any word that is not common.

    If all words are common, the query is for passages with all of them. It is empty if these are
    too many as well.
    """
    quote, either, both = ('"', " OR ", " AND ") if _is_sqlite(connection) else ("'", " | ", " & ")
    words = [f"{quote}{word}{quote}" for word in wanted]
    rare = [word for word in words if not _is_common(connection, word)]
    if rare:
        return either.join(rare)
    together = both.join(words)
    return "" if _is_common(connection, together) else together


def _is_common(connection: Connection, query: str) -> bool:
    most = COMMON[connection.dialect.name]
    count = _COUNT_SQLITE if _is_sqlite(connection) else _COUNT_POSTGRES
    return int(connection.scalar(count, {"words": query, "most": most + 1}) or 0) > most


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
