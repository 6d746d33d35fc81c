"""UI bundler: build the React components of `ui` in `langgraph.json`, for generative UI.

`@langchain/langgraph-ui` builds them in a process of Node, which builds them again when a file
changes. If it cannot run, the API serves without them: the reason is in the log.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import structlog

from langgraph_runtime_sql.periodic import periodic

logger = structlog.stdlib.get_logger(__name__)

PACKAGE = "@langchain/langgraph-ui"
LOOK_SECONDS = 0.5
STOP_SECONDS = 5.0


@contextlib.asynccontextmanager
async def bundling(project: Path) -> AsyncIterator[None]:
    """Build the components until the end of the block, if the configuration has any.

    Args:
        project: Folder of the `langgraph.json`, from which the paths of the components count.
    """
    from langgraph_api.config import UI_USE_BUNDLER

    if not (UI_USE_BUNDLER and os.getenv("LANGGRAPH_UI")):
        yield
        return
    tasks = [
        asyncio.create_task(_build(project), name="ui-bundler"),
        asyncio.create_task(_forget_old_builds(), name="ui-builds"),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _build(project: Path) -> None:
    from langgraph_api.js.ui import UI_ROOT_DIR, UI_SCHEMAS_FILE

    npx = shutil.which("npx")
    if npx is None:
        if not UI_SCHEMAS_FILE.exists():
            logger.error(
                "ui: its components are not served, because they are built with Node: install "
                "Node 20 or later, or remove `ui` from langgraph.json",
                action="ui_not_served",
            )
        return
    try:
        UI_ROOT_DIR.mkdir(parents=True, exist_ok=True)
        # A version that the project has installed comes first.
        process = await asyncio.create_subprocess_exec(
            *(npx, "-y", PACKAGE, "watch", "-o", str(UI_ROOT_DIR)),
            cwd=project,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        logger.error("ui: its components are not served", action="ui_not_served", exc_info=error)
        return
    try:
        said = await _last_words(process)
        code = await process.wait()
        logger.error(
            f"ui: {PACKAGE} ended with code {code}, so its components are not built: {said}",
            action="ui_not_served",
        )
    finally:
        await _end(process)


async def _last_words(process: asyncio.subprocess.Process) -> str:
    """Read what the process says of errors until it ends, and return the last line."""
    last = ""
    if process.stderr is not None:
        async for line in process.stderr:
            last = line.decode(errors="replace").strip() or last
    return last


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and the ones that it has started."""
    for number in (15, 9):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()


def _forget_old_builds() -> Coroutine[Any, Any, None]:
    """Let the API read the list of the components again after each build; it keeps the first."""
    from langgraph_api.api import ui
    from langgraph_api.js.ui import UI_SCHEMAS_FILE

    built = None

    async def look() -> None:
        nonlocal built
        found = UI_SCHEMAS_FILE.stat().st_mtime_ns if UI_SCHEMAS_FILE.exists() else None
        if found != built:
            built, ui._UI_SCHEMAS_CACHE = found, None

    return periodic(look, LOOK_SECONDS, "Builds not looked for", "ui_builds_failed", at_once=True)
