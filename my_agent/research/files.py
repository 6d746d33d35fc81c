"""Files: write the state file and the backups of a project, for people and for recovery.

Nothing depends on them: a folder that cannot be written is a warning in the log.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from my_agent.research import backups, state_file
from my_agent.research.model import ProjectSnapshot
from my_agent.research.projects import Key, find
from my_agent.research.settings import ResearchSettings

logger = logging.getLogger(__name__)

BACKUP_SECONDS = 30.0


def folder(settings: ResearchSettings, key: Key) -> Path | None:
    """Return the folder of the tenant's files; None if the settings name none."""
    base = settings.research_data_folder
    if base == "off":
        return None
    # A tenant's name may hold anything; its folder must not leave the base.
    name = quote(key.tenant_id, safe="").replace(".", "%2E")
    return Path(base) / (name or "%00")


async def save(settings: ResearchSettings, key: Key, snapshot: ProjectSnapshot) -> None:
    """Write the state file, and a backup that is marked as the latest."""
    place = folder(settings, key)
    if place is None:
        return
    try:
        await _write(settings, key, lambda: state_file.write(place, snapshot))
    except OSError:
        logger.warning(
            "The state file of project %s was not written", key.project_id, exc_info=True
        )
        return
    await back_up(settings, key, snapshot, latest=True)


async def _write(settings: ResearchSettings, key: Key, write: Callable[[], object]) -> None:
    """Write a file, and remove it if the project was deleted meanwhile.

    A deletion removes the rows first, then the files. It also cancels the run, whose thread still
    ends what it writes; so what follows must not be cancelled.
    """

    async def whole() -> None:
        await asyncio.to_thread(write)
        if await find(key) is None:
            await remove(settings, key)

    await asyncio.shield(whole())


async def remove(settings: ResearchSettings, key: Key) -> None:
    """Remove the state file and the backups of a project.

    Raises:
        OSError: a file cannot be removed.
    """
    place = folder(settings, key)
    if place is not None:
        await asyncio.to_thread(state_file.remove, place, key.project_id)


async def back_up(
    settings: ResearchSettings, key: Key, snapshot: ProjectSnapshot, *, latest: bool
) -> None:
    """Write a backup."""
    place = folder(settings, key)
    if place is None:
        return
    try:
        kept = settings.research_backups_kept
        await _write(
            settings,
            key,
            lambda: backups.save(place, key.project_id, snapshot, latest=latest, keep=kept),
        )
    except OSError:
        logger.warning("Project %s was not backed up", key.project_id, exc_info=True)


async def restore(settings: ResearchSettings, key: Key) -> ProjectSnapshot | None:
    """Return the newest undamaged backup of a project, or None."""
    place = folder(settings, key)
    if place is None:
        return None
    try:
        return await asyncio.to_thread(backups.restore, place, key.project_id)
    except OSError:
        logger.warning("The backups of project %s cannot be read", key.project_id, exc_info=True)
        return None
