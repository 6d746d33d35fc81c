"""Attempts of two processes at one run: which of them a write is of."""

from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select

from langgraph_runtime_sql import database
from langgraph_runtime_sql.connection import Connection
from langgraph_runtime_sql.ops import run_claim, run_rows
from langgraph_runtime_sql.tables import runs
from tests.support.runtime import opened, register, serving, start_run, status

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]


async def test_a_process_hands_back_only_what_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a shutdown, which is not counted, the next attempt has the same number."""
    with serving("echo"):
        async with opened(tmp_path / "x.db"):
            await register(["echo"])
            run_id = (await start_run(uuid4(), "echo", {}))["run_id"]

            async def claim(owner: str) -> int:
                monkeypatch.setattr(run_claim, "OWNER", owner)
                claimed = await database.current().write(lambda conn: run_claim.claim(conn, 1))
                [(run, attempt)] = claimed.runs
                assert run["run_id"] == run_id
                return attempt

            async def release(owner: str) -> bool:
                def fn(conn: Connection) -> bool:
                    return run_claim.release(conn, run_id, 1, counted=False, owner=owner)

                return await database.current().write(fn)

            assert await claim("first") == 1
            assert await release("first")
            assert await claim("second") == 1
            assert not await release("first")
            assert await status(run_id) == run_rows.RUNNING

            def holder(conn: Connection) -> object:
                return conn.scalar(select(runs.c.claimed_by).where(runs.c.run_id == run_id))

            assert await database.current().read(holder) == "second"
            assert await release("second")
