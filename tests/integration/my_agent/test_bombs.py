"""Hostile documents: one tenant's uploads exceed their limits, and no other tenant notices."""

import asyncio
import signal
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import pytest

from tests.support import parsers
from tests.support.issuer import SECRET, bearer, token
from tests.support.pdf import bomb
from tests.support.processes import ROOT, Running
from tests.support.served import client, served

pytestmark = pytest.mark.usefixtures("each_database")

# Seconds of a document; another tenant's upload takes one or two, on a busy machine ten.
SECONDS = 20


@pytest.fixture
def server(each_database: str, tmp_path: Path) -> Iterator[Running]:
    settings = {
        "APP_ENV": "production",
        "JWT_SECRET": SECRET,
        "OPENAI_API_KEY": "",
        "CHAT_DOCUMENT_SECONDS": str(SECONDS),
        "CHAT_DOCUMENT_MEMORY_BYTES": str(2**28),
    }
    with served(tmp_path, ROOT / "langgraph.json", **settings) as running:
        yield running


def large_docx() -> bytes:
    """Return a small file whose paragraphs need gigabytes."""
    docx.Document().save(plain := BytesIO())
    with ZipFile(plain) as archive, ZipFile(file := BytesIO(), "w", ZIP_DEFLATED) as written:
        for name in archive.namelist():
            more = b"<w:body>" + b"<w:p/>" * 20_000_000
            written.writestr(name, archive.read(name).replace(b"<w:body>", more))
    return file.getvalue()


async def test_bombs_are_refused_and_delay_no_other_tenant(server: Running) -> None:
    acme, other = bearer(token(tenant_id="acme")), bearer(token(tenant_id="other"))
    async with client(server, **acme) as hostile, client(server, **other) as api:
        # Its documents wait for each other.
        hostile.http.timeout = 6 * SECONDS
        bombs = [
            asyncio.create_task(hostile.http.put(f"/api/documents/{number}.pdf", content=bomb()))
            for number in range(4)
        ]
        async with asyncio.timeout(60):
            while not parsers.workers(server.process.pid):
                await asyncio.sleep(0)
        stored = await api.http.put("/api/documents/a.md", content=b"# A\n\nWords of another.")
        assert stored.status_code == 200
        await api.thread()
        assert not any(each.done() for each in bombs)
        done, _ = await asyncio.wait(bombs, return_when=asyncio.FIRST_COMPLETED)
        [refused] = [each.result() for each in done]
        assert refused.status_code == 422
        detail = f"The document cannot be read: it takes more than {SECONDS} seconds to read"
        assert refused.json()["detail"] == detail
        large = await api.http.put("/api/documents/b.docx", content=large_docx())
        assert large.status_code == 422
        assert large.json()["detail"].endswith(": it takes too much memory to read")
        # The other uploads still wait or run.
        left = parsers.workers(server.process.pid)
        assert left
        server.process.send_signal(signal.SIGTERM)
        await asyncio.gather(*bombs, return_exceptions=True)
        async with asyncio.timeout(60):
            while parsers.workers(server.process.pid):
                await asyncio.sleep(0)
