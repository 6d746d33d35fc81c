"""Runbooks: which documents of the chat are runbooks, and whose."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete

from my_agent.chat.documents import chunking, uploads
from my_agent.chat.documents.ingestion import ingest
from my_agent.chat.documents.surroundings import around
from my_agent.chat.tables import documents, versions
from my_agent.diagnosis import runbooks
from tests.support.products import engine
from threadhold.tables import SHARED

pytestmark = pytest.mark.usefixtures("product_database")

FULL = b"# Full\n\n## Symptoms\n\n`No space left on device` in `pg_wal`.\n\n## Mitigate\n\nDelete old logs.\n"
WORDS = "ledger: write failed: No space left on device, pg_wal is full"


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Clear the index after each test."""
    yield
    with engine().writing(SHARED) as connection:
        connection.execute(delete(documents))
        connection.execute(delete(versions))


def upload(tenant: str, name: str, content: bytes = FULL) -> None:
    """Store a document as `PUT /api/documents/{name}` does."""
    for _ in uploads.store(tenant, name, content, chunking.passages(name, content)):
        pass


async def found(tenant: str, words: str = WORDS) -> list[str]:
    return [each.document for each in await runbooks.find(tenant, words)]


async def test_upload_whose_name_begins_with_runbook_is_quoted() -> None:
    upload("acme", "Runbook full disk.MD")
    (only,) = await runbooks.find("acme", WORDS)
    assert (only.document, only.section) == ("Runbook full disk.MD", "Full > Mitigate")
    assert only.quote == "Delete old logs."
    assert only.because == "No space left on device"
    with engine().reading("acme") as connection:
        shown = around(connection, "acme", only.place.document_id, only.place.number)
    assert [each["text"] for each in shown if each["start"] == only.place.start] == [only.quote]


async def test_other_documents_are_no_runbooks() -> None:
    upload("acme", "full-disk.md")
    upload("acme", "runbook.txt")
    upload("acme", "old runbook.md", FULL + b"\nOld.\n")
    assert await found("acme") == []


async def test_files_of_an_ingested_folder_are_runbooks(tmp_path: Path) -> None:
    folder = tmp_path / "runbooks"
    folder.mkdir()
    (folder / "full.md").write_bytes(FULL)
    ingest(tmp_path, "acme")
    assert await found("acme") == ["full.md"]
    assert await found("other") == []


async def test_shared_runbooks_are_for_every_tenant_and_own_ones_for_one(tmp_path: Path) -> None:
    (tmp_path / "runbook-shared.md").write_bytes(FULL)
    ingest(tmp_path, SHARED)
    upload("acme", "runbook-own.md", FULL.replace(b"# Full", b"# Full at Acme"))
    assert sorted(await found("acme")) == ["runbook-own.md", "runbook-shared.md"]
    assert await found("other") == ["runbook-shared.md"]


async def test_deleted_runbook_is_not_quoted() -> None:
    upload("acme", "runbook.md")
    assert await found("acme") == ["runbook.md"]
    uploads.delete("acme", "runbook.md")
    assert await found("acme") == []


async def test_newest_runbooks_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runbooks, "MOST_COMPARED", 2)
    upload("acme", "runbook-old.md")
    upload("acme", "runbook-new.md", FULL.replace(b"old logs", b"new logs"))
    assert await found("acme") == ["runbook-new.md"]


async def test_nothing_to_search_for_finds_nothing() -> None:
    assert await found("acme", " ") == []
    assert await found("acme") == []
