"""The document index: ingestion of folders, and search."""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, func, select, text

from my_agent import embedding
from my_agent.chat.documents import index, keywords, postgres_words
from my_agent.chat.documents import search as search_module
from my_agent.chat.documents import vectors as vectors_module
from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.ingestion import EmptiedFolderError, Report, ingest
from my_agent.chat.documents.search import has_documents, search
from my_agent.chat.documents.vectors import BYTES, VectorCache, nearest
from my_agent.chat.tables import ABANDONED, documents, files, passages, staged, versions
from my_agent.tables import tables
from my_agent.turns import TenantThreads
from tests.support.products import engine
from threadhold.tables import SHARED

pytestmark = pytest.mark.usefixtures("product_database")

SKARRA = "# Skarra Light\n\n## Tower\n\nIt has six levels.\n\n## Lamp\n\nIt burned paraffin.\n"
VELHO = "# Farol Velho\n\nO farol tem quatro níveis.\n"


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Clear the index before each test."""
    yield
    with engine().writing(SHARED) as connection:
        connection.execute(delete(documents))
        connection.execute(delete(versions))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    (folder / "pt").mkdir(parents=True)
    (folder / "skarra.md").write_text(SKARRA)
    (folder / "pt" / "velho.md").write_text(VELHO)
    return folder


def counts(report: Report) -> tuple[int, int, int, int, int]:
    """Return the numbers of files added, changed, unchanged and removed, and of passages embedded."""
    return report.added, report.changed, report.unchanged, report.removed, report.passages


def texts(tenant: str = SHARED) -> list[str]:
    """Return the tenant's own passages."""
    wanted = select(passages.c.text).where(passages.c.tenant_id == tenant)
    with engine().reading(SHARED) as connection:
        return sorted(connection.scalars(wanted))


def found(question: str, tenant: str = "acme") -> list[str]:
    return [each.text for each in search(question, tenant).passages]


def words(question: str, tenant: str = "acme") -> list[str]:
    """Return the passages that keyword search alone finds."""
    with engine().reading(SHARED) as connection:
        ids = keywords.find(connection, question, tenant, 10)
        known = index.fetch(connection, tenant, ids)
    return [known[each].text for each in ids]


def test_unchanged_folder_is_ingested_once(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = ingest(folder, SHARED, lambda done, of: seen.append((done, of)))
    assert counts(report) == (2, 0, 0, 0, 3)
    assert report.skipped == []
    size = len(SKARRA.encode()) + len(VELHO.encode())
    assert seen == sorted(seen) and seen[-1] == (size, size)
    assert counts(ingest(folder, SHARED)) == (0, 0, 2, 0, 0)
    assert texts() == ["It burned paraffin.", "It has six levels.", "O farol tem quatro níveis."]


def test_passages_keep_title_and_section(folder: Path) -> None:
    ingest(folder, SHARED)
    [best, *_] = search("How many levels does Skarra have?", "acme").passages
    assert best == Passage(1, "Skarra Light", "Tower", "It has six levels.")


def test_only_changed_files_are_embedded_again(folder: Path) -> None:
    ingest(folder, SHARED)
    with engine().reading(SHARED) as connection:
        before = index.version(connection, SHARED)
    (folder / "skarra.md").write_text("# Skarra Light\n\nIt burned down.\n")
    assert counts(ingest(folder, SHARED)) == (0, 1, 1, 0, 1)
    assert texts() == ["It burned down.", "O farol tem quatro níveis."]
    assert words("paraffin") == []
    with engine().reading(SHARED) as connection:
        assert index.version(connection, SHARED) != before


def test_deleted_files_are_removed(folder: Path) -> None:
    ingest(folder, SHARED)
    (folder / "skarra.md").unlink()
    assert counts(ingest(folder, SHARED)) == (0, 0, 1, 1, 0)
    assert texts() == ["O farol tem quatro níveis."]
    assert words("paraffin") == []
    (folder / "pt" / "velho.md").unlink()
    # An emptied folder is more often a mistake, such as a disk that is not mounted.
    with pytest.raises(EmptiedFolderError, match="kept"):
        ingest(folder, SHARED)
    assert texts() == ["O farol tem quatro níveis."]
    assert counts(ingest(folder, SHARED, emptied=True)) == (0, 0, 0, 1, 0)
    assert not has_documents("acme")
    assert found("níveis") == []


def test_other_folders_stay_unchanged(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "documents-2"
    other.mkdir()
    (other / "a.txt").write_text("Something else.")
    ingest(other, SHARED)
    ingest(folder, SHARED)
    # Ingesting a subfolder affects only its own files; ingesting its parent affects all.
    (folder / "skarra.md").unlink()
    assert counts(ingest(folder / "pt", SHARED)) == (0, 0, 1, 0, 0)
    assert len(texts()) == 4
    assert counts(ingest(tmp_path, SHARED)) == (0, 0, 2, 1, 0)


def test_equal_content_is_stored_once(folder: Path) -> None:
    (folder / "copy.md").write_text(SKARRA)
    assert counts(ingest(folder, SHARED)) == (3, 0, 0, 0, 3)
    assert len(texts()) == 3
    # The document stays as long as any file has its content, also after a rename.
    (folder / "skarra.md").rename(folder / "moved.md")
    (folder / "copy.md").unlink()
    assert counts(ingest(folder, SHARED)) == (1, 0, 1, 2, 0)
    assert len(texts()) == 3


def test_single_file_can_be_ingested(folder: Path) -> None:
    assert counts(ingest(folder / "skarra.md", SHARED)) == (1, 0, 0, 0, 2)
    assert counts(ingest(folder, SHARED)) == (1, 0, 1, 0, 1)
    assert counts(ingest(folder / "skarra.md", SHARED)) == (0, 0, 1, 0, 0)
    assert len(texts()) == 3


def test_unreadable_files_are_reported_and_skipped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_DOCUMENT_MAX_BYTES", "1000")
    (folder / "big.txt").write_text("x" * 1001)
    (folder / "binary.md").write_bytes(b"\x00\x01")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    (folder / "empty.txt").touch()
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.md").write_text("# Hidden")
    (folder / "\udcff.txt").write_bytes(b"A name that is not UTF-8.\xff\x00")
    os.mkfifo(folder / "pipe.txt")
    report = ingest(folder, SHARED)
    assert counts(report) == (2, 0, 0, 0, 3)
    reasons = {name.removeprefix("documents/"): why for name, why in report.skipped}
    assert reasons.pop("picture.png").startswith("documents are .csv, .docx")
    assert reasons == {
        "big.txt": "it is larger than 1,000 bytes (CHAT_DOCUMENT_MAX_BYTES)",
        "binary.md": "it is binary",
        "broken.pdf": "it is damaged (PdfStreamError)",
        "empty.txt": "it is empty",
        "pipe.txt": "it is not a regular file",
        "\\xff.txt": "it is binary",
    }
    assert str(report).endswith("7 skipped; 3 passages embedded")


def test_file_name_that_is_not_unicode_is_ingested(folder: Path) -> None:
    (folder / "\udcff").mkdir()
    (folder / "\udcff" / "\udcfe.txt").write_text("Found all the same.")
    assert counts(ingest(folder, SHARED)) == (3, 0, 0, 0, 4)
    assert counts(ingest(folder / "\udcff", SHARED)) == (0, 0, 1, 0, 0)
    [best, *_] = search("What is found all the same?", "acme").passages
    assert (best.title, best.text) == ("?", "Found all the same.")


def test_links_out_of_the_folder_are_skipped(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# Secret\n\nNot for you.")
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "folder").symlink_to(outside)
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "nowhere.md").symlink_to(folder / "gone.md")
    (folder / "inside.md").symlink_to("skarra.md")
    report = ingest(folder, SHARED)
    assert counts(report) == (3, 0, 0, 0, 3)
    assert [name for name, _ in sorted(report.skipped)] == [
        f"documents/{name}" for name in ("file.md", "folder", "loop.md", "nowhere.md")
    ]
    assert "Not for you." not in texts()


def test_file_that_became_empty_is_removed(folder: Path) -> None:
    ingest(folder, SHARED)
    (folder / "skarra.md").write_text("")
    report = ingest(folder, SHARED)
    assert counts(report) == (0, 0, 1, 1, 0)
    assert report.skipped == [("documents/skarra.md", "it is empty")]


def test_file_with_io_error_keeps_its_stored_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(folder, SHARED)

    def fails(path: Path, largest: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("my_agent.chat.documents.reading.load", fails)
    report = ingest(folder, SHARED)
    assert counts(report) == (0, 0, 0, 0, 0)
    assert [why for _, why in report.skipped] == ["Permission denied"] * 2
    assert len(texts()) == 3


def test_interrupted_ingestion_continues(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_passages = embedding.of_passages

    def dies(texts_of_passages: list[str]) -> Iterator[embedding.Vectors]:
        if "Farol" in texts_of_passages[0]:
            raise KeyboardInterrupt
        return of_passages(texts_of_passages)

    monkeypatch.setattr(embedding, "of_passages", dies)
    with pytest.raises(KeyboardInterrupt):
        ingest(folder, SHARED)
    monkeypatch.setattr(embedding, "of_passages", of_passages)
    assert len(texts()) == 2
    assert counts(ingest(folder, SHARED)) == (1, 0, 1, 0, 1)


def test_ingestion_continues_within_a_document(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "BATCH", 4)
    monkeypatch.setattr("my_agent.chat.documents.ingestion.STAGED", 4)
    sections = [f"## Part {number}\n\nText {number}.\n" for number in range(10)]
    (folder / "long.md").write_text("# Long\n\n" + "\n".join(sections))
    of_passages, embedded = embedding.of_passages, list[str]()

    def dies(given: list[str]) -> Iterator[embedding.Vectors]:
        if "Text 8" in given[0]:
            raise KeyboardInterrupt
        return of_passages(given)

    monkeypatch.setattr(embedding, "of_passages", dies)
    with pytest.raises(KeyboardInterrupt):
        ingest(folder / "long.md", SHARED)
    assert texts() == []

    def noted(given: list[str]) -> Iterator[embedding.Vectors]:
        embedded.extend(given)
        return of_passages(given)

    monkeypatch.setattr(embedding, "of_passages", noted)
    assert ingest(folder / "long.md", SHARED).added == 1
    assert len(embedded) == 2 and len(texts()) == 10
    with engine().reading(SHARED) as connection:
        assert connection.scalar(select(func.count()).select_from(staged)) == 0


def test_tenants_cannot_read_each_others_documents(folder: Path, tmp_path: Path) -> None:
    ingest(folder, "acme")
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.md").write_text("# Globex\n\nGlobex has ten levels.")
    ingest(own, "globex")
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "a.md").write_text("# All\n\nEverybody has levels.")
    ingest(shared, SHARED)
    mine, theirs, everybodys = (
        "It has six levels.",
        "Globex has ten levels.",
        "Everybody has levels.",
    )
    question = "globex skarra levels"
    assert mine in found(question, "acme") and theirs not in found(question, "acme")
    assert theirs in found(question, "globex") and mine not in found(question, "globex")
    assert words("levels", "acme") and theirs not in words("levels", "acme")
    for tenant in ("acme", "globex", "initech", SHARED, "acme' OR 1=1 --", "%"):
        assert everybodys in found(question, tenant)
    for stranger in ("initech", SHARED, "acme' OR 1=1 --", "%", "ACME"):
        assert found(question, stranger) == [everybodys]
        assert words("levels", stranger) == [everybodys]
    with engine().reading(SHARED) as connection:
        ids = list(connection.scalars(select(passages.c.passage_id)))
        assert len(index.fetch(connection, "initech", ids)) == 1


def test_ingestion_changes_only_its_own_tenant(folder: Path) -> None:
    ingest(folder, "acme")
    ingest(folder, "globex")
    assert texts("acme") == texts("globex") and len(texts("acme")) == 3
    (folder / "skarra.md").unlink()
    ingest(folder, "globex")
    assert (len(texts("acme")), len(texts("globex"))) == (3, 1)


def test_document_that_is_shared_and_own_is_found_once(folder: Path) -> None:
    ingest(folder, SHARED)
    ingest(folder, "acme")
    assert len(found("levels of Skarra")) == len(set(found("levels of Skarra"))) == 2


HOSTILE = [
    'six AND NOT levels"',
    "six* NEAR(levels, 2)",
    "title:six",
    "- ^six {levels} \\ ' ; DROP TABLE chat_passage; --",
    "six) OR (levels",
    "%_ six",
    "six\x00levels",
    "\udcff six",
    "six | levels & ! <-> :*",
]


@pytest.mark.parametrize("question", HOSTILE)
def test_operators_in_questions_are_plain_text(folder: Path, question: str) -> None:
    ingest(folder, SHARED)
    assert words(question) == ["It has six levels."] or "six" not in question
    assert "It has six levels." in found(question)


@pytest.mark.parametrize("question", ["", " \n", "?!", "😀", "' \" * ( ) : -", "NOT"])
def test_question_without_words_finds_nothing_by_keyword(folder: Path, question: str) -> None:
    ingest(folder, SHARED)
    assert words(question) == []
    assert isinstance(found(question), list)


def test_keywords_ignore_accents_and_endings(folder: Path) -> None:
    ingest(folder, SHARED)
    assert words("NIVEIS") == words("níveis") == ["O farol tem quatro níveis."]
    assert words("level") == ["It has six levels."]
    # Titles and sections are searched, too.
    assert words("lamp") == ["It burned paraffin."]
    assert words("word " * 5000 + "levels") == ["It has six levels."]


# Only Postgres has policies, and a table of words because of them.
@pytest.mark.only("postgresql")
def test_words_of_other_tenants_are_hidden_and_the_index_serves_them(folder: Path) -> None:
    ingest(folder, "acme")
    with engine().writing("acme") as connection:
        document = connection.scalar(select(documents.c.document_id))
        connection.execute(
            text(
                """INSERT INTO chat_word
                SELECT 'acme', 'word' || number % 5000, :document, ARRAY[number], ARRAY[1]
                FROM generate_series(1, 100000) AS number"""
            ),
            {"document": document},
        )
    with engine().writing("acme") as connection:
        connection.execute(text("ANALYZE chat_word"))
        asked = {"words": ["paraffin"], "worths": [1.0], "tenant": "acme", "most": 30, "least": 1}
        find = f"EXPLAIN {postgres_words._FIND}"
        count = f"EXPLAIN {postgres_words._COUNT}"
        for statement in (text(find), text(count)):
            given = {**asked, "rows": 1000}
            plan = "\n".join(
                connection.scalars(
                    statement, {name: given[name] for name in statement.compile().params}
                )
            )
            assert "ix_chat_word" in plan
            assert "Index Cond" in plan
            assert "Seq Scan" not in plan
        assert keywords.find(connection, "paraffin", "acme", 5) != []
    with engine().reading("other") as connection:
        assert connection.scalar(text("SELECT count(*) FROM chat_word")) == 0
        # Even a statement that names another tenant finds nothing.
        assert keywords.find(connection, "paraffin", "acme", 5) == []
    with engine().writing("acme") as connection:
        connection.execute(delete(documents))
        assert connection.scalar(text("SELECT count(*) FROM chat_word")) == 0


@pytest.mark.only("postgresql")
def test_words_that_are_all_common_find_the_passages_with_all_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(folder, "acme")
    with engine().reading("acme") as connection:
        monkeypatch.setattr(keywords, "COMMON", 0)
        (found,) = keywords.find(connection, "paraffin lamp", "acme", 5)
        assert "paraffin" in index.fetch(connection, "acme", [found])[found].text
        assert keywords.find(connection, "paraffin levels", "acme", 5) == []
        monkeypatch.setattr(postgres_words, "MOST_ROWS", 1)
        assert keywords.find(connection, "paraffin lamp", "acme", 5) == []


def test_changed_document_embeds_only_its_new_passages(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "long.md"
    sections = [f"## Part {number}\n\nText of part {number}.\n\n" for number in range(6)]
    path.write_text("".join(["# Long\n\n", *sections]))
    ingest(path, "acme")
    of_passages, embedded = embedding.of_passages, list[str]()

    def counts(given: list[str]) -> Iterator[embedding.Vectors]:
        embedded.extend(given)
        return of_passages(given)

    monkeypatch.setattr(embedding, "of_passages", counts)
    sections[2] = sections[2].replace("Text", "New text")
    path.write_text("".join(["# Long\n\n", *sections, *sections[5:]]))
    ingest(path, "acme")
    assert ["New text" in each for each in embedded] == [True]
    with engine().reading("acme") as connection:
        ids, vectors = next(index.blocks(connection, "acme"))
        found = index.fetch(connection, "acme", ids)
        expected = of_passages([found[each].in_context for each in ids])
        for vector, other in zip(
            vectors, (each for batch in expected for each in batch), strict=True
        ):
            assert vector @ other > 0.999


def test_vectors_of_abandoned_documents_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    half = [embedding.of_question("half")]
    with engine().writing("acme") as connection:
        index.stage(connection, "acme", "old", 1, half)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + ABANDONED + 10)
    with engine().writing("acme") as connection:
        index.stage(connection, "acme", "new", 1, half)
    tables.write(tables.expire, SHARED)
    with engine().writing("acme") as connection:
        assert connection.scalars(select(staged.c.digest)).all() == ["new"]
        connection.execute(delete(staged))


def test_question_in_another_language_finds_passage(folder: Path) -> None:
    ingest(folder, SHARED)
    question = "Qual era o combustível da lâmpada?"
    assert words(question) == []
    assert found(question)[0] == "It burned paraffin."


def vectors(count: int, rng: random.Random) -> list[embedding.Vectors]:
    import numpy as np

    made = np.array([[rng.gauss(0, 1) for _ in range(embedding.DIMENSIONS)] for _ in range(count)])
    return list((made / np.linalg.norm(made, axis=1, keepdims=True)).astype("float32"))


def fill(tenant: str, path: str, made: list[embedding.Vectors]) -> None:
    content = {
        Passage(number, path, "", f"{path} {number}"): vector for number, vector in enumerate(made)
    }
    with engine().writing(SHARED) as connection:
        index.add(connection, tenant, path, path, content)


def nearest_ids(cache: VectorCache, question: embedding.Vectors, tenant: str) -> list[int]:
    with engine().reading(SHARED) as connection:
        return nearest(connection, cache, question, tenant, 5)


def test_cache_gives_same_results_as_table(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors are read in blocks or at once, cached or not."""
    made = vectors(50, rng)
    fill("acme", "a", made[:30])
    fill(SHARED, "b", made[30:])
    question = vectors(1, rng)[0]
    with engine().reading(SHARED) as connection:
        order = select(passages.c.passage_id).order_by(passages.c.passage_id)
        ids = list(connection.scalars(order))
    by_hand = sorted(zip(ids, made, strict=True), key=lambda each: -float(each[1] @ question))
    expected = [passage for passage, _ in by_hand[:5]]
    roomy, none = VectorCache(10**6), VectorCache(0)
    assert nearest_ids(roomy, question, "acme") == expected
    monkeypatch.setattr(index, "BLOCK", 7)
    assert nearest_ids(none, question, "acme") == expected
    assert nearest_ids(VectorCache(10**6), question, "acme") == expected
    assert (roomy.bytes, none.bytes) == (50 * BYTES, 0)


def test_cached_vectors_are_not_read_again(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("acme", "a", vectors(3, rng))
    read: list[tuple[str, int]] = []
    blocks = index.blocks
    monkeypatch.setattr(
        index,
        "blocks",
        lambda connection, tenant, after=0: (
            read.append((tenant, after)) or blocks(connection, tenant, after)
        ),
    )
    cache, question = VectorCache(10**6), vectors(1, rng)[0]
    first = nearest_ids(cache, question, "acme")
    assert nearest_ids(cache, question, "acme") == first
    assert read == [("acme", 0)]
    # After a change of the index, by this or another process, only new vectors are read.
    fill("acme", "b", [question])
    assert nearest_ids(cache, question, "acme")[0] not in first
    assert read == [("acme", 0), ("acme", max(first))]
    # Changes of other tenants have no effect.
    fill("globex", "c", [question])
    nearest_ids(cache, question, "acme")
    assert len(read) == 2
    # Deleted passages are not found, and leave the memory when there are many.
    with engine().writing("acme") as connection:
        index.forget(connection, "acme", ["a"])
    assert len(nearest_ids(cache, question, "acme")) == 1
    assert cache.bytes == BYTES


def test_bits_find_the_nearest_of_many(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "RESCORED", 60)
    made = vectors(400, rng)
    fill("acme", "a", made)
    cache = VectorCache(10**6)
    hits = 0
    for vector in made[:20]:
        noisy = vector + 0.5 * vectors(1, rng)[0]
        best = max(range(400), key=lambda each: float(made[each] @ noisy))
        with engine().reading("acme") as connection:
            found = index.fetch(connection, "acme", nearest_ids(cache, noisy, "acme")[:1])
        hits += [each.text for each in found.values()] == [f"a {best}"]
    assert hits == 20


def test_cache_stays_within_its_size_limit(rng: random.Random) -> None:
    for tenant in ("a", "b", "c", "d"):
        fill(tenant, tenant, vectors(10, rng))
    cache, question = VectorCache(25 * BYTES), vectors(1, rng)[0]
    for tenant in ("a", "b", "a", "c", "d", "b"):
        assert len(nearest_ids(cache, question, tenant)) == 5
        assert cache.bytes <= cache.max_bytes


def test_full_text_index_matches_the_passages(folder: Path) -> None:
    ingest(folder, SHARED)
    (folder / "skarra.md").write_text("# Other\n\nOther words.")
    ingest(folder, SHARED)
    with engine().writing(SHARED) as connection:
        if connection.dialect.name == "sqlite":
            check = "INSERT INTO chat_passage_words (chat_passage_words) VALUES ('integrity-check')"
            connection.execute(text(check))
        kept = connection.scalar(select(func.count()).select_from(files))
    assert kept == 2


# --- turns


def test_tenant_waits_for_one_question_of_another_tenant_and_not_for_its_backlog(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(folder, SHARED)
    embed, free, order = embedding.of_question, threading.Event(), list[str]()

    waiting = threading.Semaphore(0)
    submit = TenantThreads.submit

    def noted(turns: TenantThreads, tenant: str, work: Callable[[], Any]) -> Any:
        future = submit(turns, tenant, work)
        waiting.release()
        return future

    def slow(text: str) -> embedding.Vectors:
        assert free.wait(30)
        order.append(text[:3])
        return embed(text)

    monkeypatch.setattr(TenantThreads, "submit", noted)
    monkeypatch.setattr(embedding, "of_question", slow)
    with ThreadPoolExecutor(11) as pool:
        backlog = [pool.submit(search, "bad " * 30, "bad") for _ in range(10)]
        assert all(waiting.acquire(timeout=30) for _ in backlog)
        other = pool.submit(search, "good: how many levels?", "good")
        assert waiting.acquire(timeout=30)
        free.set()
        assert other.result().passages
        assert all(each.result() is not None for each in backlog)
    # One question of the other tenant was being embedded, and one had its turn before.
    assert order.index("goo") <= 2
    assert order.count("bad") == 10


def test_question_that_waits_too_long_is_searched_by_its_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(folder, SHARED)
    free = threading.Event()
    embed = embedding.of_question

    def slow(text: str) -> embedding.Vectors:
        assert free.wait(30)
        return embed(text)

    monkeypatch.setattr(embedding, "of_question", slow)
    monkeypatch.setattr(search_module, "SECONDS", 0.1)
    try:
        assert found("paraffin") == words("paraffin") == ["It burned paraffin."]
    finally:
        free.set()
