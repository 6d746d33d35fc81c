"""Backups of a project: numbered files with their SHA-256, and the name of the latest one."""

import logging
import re
from hashlib import sha256
from pathlib import Path

from my_agent.research import state_file
from my_agent.research.model import ProjectSnapshot
from my_agent.research.state_file import DamagedState, checked_id

logger = logging.getLogger(__name__)

_NAME = re.compile(r"(\d{6})\.md")
LATEST = "latest"


def save(
    folder: Path, project_id: str, snapshot: ProjectSnapshot, *, latest: bool, keep: int = 10
) -> Path:
    """Write a backup to `backups/{projectId}`.

    Args:
        folder: the folder of the state files.
        project_id: the project.
        snapshot: what is saved.
        latest: mark it as the latest: a stage has ended.
        keep: number of backups that are kept.

    Raises:
        BadProjectId: the id could leave the folder.
        OSError: the folder cannot be written.
    """
    place = _place(folder, project_id)
    number = max(_numbers(place), default=0) + 1
    content = state_file.render(snapshot).encode()
    file = place / f"{number:06}.md"
    state_file.replace_file(file, content)
    state_file.replace_file(file.with_suffix(".sha256"), sha256(content).hexdigest().encode())
    if latest:
        state_file.replace_file(place / LATEST, file.name.encode())
    marked = _marked(place)
    for old in sorted(_numbers(place))[:-keep]:
        if f"{old:06}.md" != marked:
            (place / f"{old:06}.md").unlink(missing_ok=True)
            (place / f"{old:06}.sha256").unlink(missing_ok=True)
    return file


def restore(folder: Path, project_id: str) -> ProjectSnapshot | None:
    """Return the newest undamaged backup; None if there is none.

    A damaged one is skipped for the next older, with a warning in the log.

    Raises:
        BadProjectId: the id could leave the folder.
        OSError: the folder cannot be read.
    """
    place = _place(folder, project_id)
    for number in sorted(_numbers(place), reverse=True):
        file = place / f"{number:06}.md"
        try:
            return _read(file)
        except (OSError, ValueError) as error:
            logger.warning(
                "The backup %s of project %s is damaged: %s", file.name, project_id, error
            )
    return None


def _read(file: Path) -> ProjectSnapshot:
    content = file.read_bytes()
    wanted = file.with_suffix(".sha256").read_text("utf-8").strip()
    if sha256(content).hexdigest() != wanted:
        raise DamagedState("its checksum differs")
    return state_file.parse(content.decode())


def _place(folder: Path, project_id: str) -> Path:
    return folder / "backups" / checked_id(project_id)


def _numbers(place: Path) -> list[int]:
    found = (_NAME.fullmatch(each.name) for each in place.glob("*.md"))
    return [int(match[1]) for match in found if match is not None]


def _marked(place: Path) -> str:
    file = place / LATEST
    return file.read_text("utf-8").strip() if file.exists() else ""
