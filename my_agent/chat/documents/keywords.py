"""Keywords: find passages by the words of a question with the database's full-text search.

All code that differs between SQLite and Postgres is in this module.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, text

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
# Row-level security compares the tenant of each row before `@@`, which may therefore use no index.
# So the words are in a table without it. The table gives ids only; the passages are read from their
# own table. A trigger fills it, also for passages that a move or an older process inserts.
_POSTGRES_WORDS = (
    "DROP INDEX chat_passage_words",
    """CREATE TABLE chat_lexeme (
        passage_id integer PRIMARY KEY REFERENCES chat_passage ON DELETE CASCADE,
        tenant_id text NOT NULL, words tsvector NOT NULL)""",
    f"""INSERT INTO chat_lexeme (passage_id, tenant_id, words)
        SELECT passage_id, tenant_id, {_WEIGHTED} FROM chat_passage""",
    "CREATE INDEX ix_chat_lexeme_words ON chat_lexeme USING gin (words)",
    f"""CREATE FUNCTION chat_add_lexemes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO chat_lexeme (passage_id, tenant_id, words)
        SELECT new.passage_id, new.tenant_id, {_WEIGHTED}
        FROM (SELECT new.title AS title, new.section AS section, new.text AS text) AS passage;
        RETURN new; END $$""",
    """CREATE TRIGGER chat_passage_added AFTER INSERT ON chat_passage
        FOR EACH ROW EXECUTE FUNCTION chat_add_lexemes()""",
)
_FIND_POSTGRES = text(
    f"""SELECT passage_id FROM chat_lexeme,
        to_tsquery('english', translate(lower(:words), '{_ACCENTED}', '{_PLAIN}')) AS query
    WHERE words @@ query AND tenant_id IN (:tenant, '')
    ORDER BY ts_rank('{{0.5, 0.5, 0.5, 1.0}}', words, query, 1) DESC, passage_id
    LIMIT :most"""
)

# They stop at the limit.
_COUNT_SQLITE = text(
    """SELECT count(*) FROM (
        SELECT 1 FROM chat_passage_words WHERE chat_passage_words MATCH :words LIMIT :most)"""
)
_COUNT_POSTGRES = text(
    f"""SELECT count(*) FROM (
        SELECT 1 FROM chat_lexeme WHERE words @@
            to_tsquery('english', translate(lower(:words), '{_ACCENTED}', '{_PLAIN}'))
            AND tenant_id IN (:tenant, '')
        LIMIT :most) AS found"""
)


def create(connection: Connection) -> None:
    """Create the full-text index of the passages. Called by the migration."""
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRES:
        connection.exec_driver_sql(statement)


def create_words(connection: Connection) -> None:
    """Replace the full-text index of Postgres by a table of words. Called by the migration."""
    for statement in _POSTGRES_WORDS:
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
    query = _selective(connection, wanted, tenant)
    if not query:
        return []
    find = _FIND_SQLITE if connection.dialect.name == "sqlite" else _FIND_POSTGRES
    parameters = {"words": query, "tenant": tenant, "most": most}
    return [int(row[0]) for row in connection.execute(find, parameters)]


def _selective(connection: Connection, wanted: Sequence[str], tenant: str) -> str:
    """Return a query for passages with any word that is not common.

    If all words are common, the query is for passages with all of them. It is empty if these are
    too many as well.
    """
    quote, either, both = ('"', " OR ", " AND ") if _is_sqlite(connection) else ("'", " | ", " & ")
    words = [f"{quote}{word}{quote}" for word in wanted]
    rare = [word for word in words if not _is_common(connection, word, tenant)]
    if rare:
        return either.join(rare)
    together = both.join(words)
    return "" if _is_common(connection, together, tenant) else together


def _is_common(connection: Connection, query: str, tenant: str) -> bool:
    parameters: dict[str, str | int] = {"words": query, "most": COMMON + 1}
    if _is_sqlite(connection):
        # Over all tenants: SQLite's index of words knows no tenant.
        return int(connection.scalar(_COUNT_SQLITE, parameters) or 0) > COMMON
    found = connection.scalar(_COUNT_POSTGRES, {**parameters, "tenant": tenant})
    return int(found or 0) > COMMON


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"
