"""Hostile documents: one tenant's uploads exceed their limits, and no other tenant notices."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
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

# Longer than the test, however busy the machine: a bomb does not end by itself.
ENDLESS = 600


@contextmanager
def limited(folder: Path, seconds: int) -> Iterator[Running]:
    """Serve the project, with a limit of seconds for a document."""
    settings = {
        "APP_ENV": "production",
        "JWT_SECRET": SECRET,
        "OPENAI_API_KEY": "",
        "CHAT_DOCUMENT_SECONDS": str(seconds),
        "CHAT_DOCUMENT_MEMORY_BYTES": str(2**28),
    }
    with served(folder, ROOT / "langgraph.json", **settings) as running:
        yield running


def large_docx() -> bytes:
    """Return a small file whose paragraphs need gigabytes."""
    docx.Document().save(plain := BytesIO())
    with ZipFile(plain) as archive, ZipFile(file := BytesIO(), "w", ZIP_DEFLATED) as written:
        for name in archive.namelist():
            more = b"<w:body>" + b"<w:p/>" * 20_000_000
            written.writestr(name, archive.read(name).replace(b"<w:body>", more))
    return file.getvalue()


async def test_bombs_delay_no_other_tenant(tmp_path: Path) -> None:
    acme, other = bearer(token(tenant_id="acme")), bearer(token(tenant_id="other"))
    with limited(tmp_path, ENDLESS) as server:
        async with client(server, **acme) as hostile, client(server, **other) as api:
            hostile.http.timeout = ENDLESS
            bombs = [
                asyncio.create_task(hostile.http.put(f"/api/documents/{n}.pdf", content=bomb()))
                for n in range(4)
            ]
            async with asyncio.timeout(60):
                while not parsers.workers(server.process.pid):
                    await asyncio.sleep(0)
            stored = await api.http.put("/api/documents/a.md", content=b"# A\n\nWords of another.")
            assert stored.status_code == 200
            await api.thread()
            large = await api.http.put("/api/documents/b.docx", content=large_docx())
            assert large.status_code == 422
            assert large.json()["detail"].endswith(": it takes too much memory to read")
            assert [each.result().text for each in bombs if each.done()] == []
            # A server that ends takes the workers with it.
            assert parsers.workers(server.process.pid)
            server.process.send_signal(signal.SIGTERM)
            await asyncio.gather(*bombs, return_exceptions=True)
            async with asyncio.timeout(60):
                while parsers.workers(server.process.pid):
                    await asyncio.sleep(0)


async def test_a_bomb_is_refused(tmp_path: Path) -> None:
    with limited(tmp_path, 2) as server:
        async with client(server, **bearer(token(tenant_id="acme"))) as hostile:
            refused = await hostile.http.put("/api/documents/a.pdf", content=bomb())
    assert refused.status_code == 422
    detail = "The document cannot be read: it takes more than 2 seconds to read"
    assert refused.json()["detail"] == detail
