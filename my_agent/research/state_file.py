"""The state file of a project: Markdown that people read, and that gives the state back.

The readable part is escaped, so that nothing of a page can become a heading, a row or markup. The
same values follow at the end as one comment in JSON; `parse` reads only the frontmatter and these.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

from my_agent.research.compression import MAX_RESULTS, table
from my_agent.research.model import ProjectSnapshot, as_dict, from_dict
from my_agent.research.report.escaping import cell, inline, quoted

_BEGIN, _END = "<!-- state\n", "\n-->"


class BadProjectId(ValueError):
    """The id of a project is not one that a file may be named after."""


class DamagedState(ValueError):
    """A state file cannot be read back."""


def checked_id(project_id: str) -> str:
    """Return the id if a file may be named after it.

    Raises:
        BadProjectId: it is not a UUID, nor letters, digits, `-` and `_`.
    """
    try:
        return str(UUID(project_id))
    except ValueError:
        if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", project_id):
            return project_id
        raise BadProjectId("A project's id has letters, digits, - and _ only") from None


def write(folder: Path, snapshot: ProjectSnapshot) -> Path:
    """Write `{projectId}.md` in one step: readers see the old file or the new one.

    Raises:
        BadProjectId: the id could leave the folder.
        OSError: the folder cannot be written.
    """
    file = folder / f"{checked_id(snapshot.project_id)}.md"
    replace_file(file, render(snapshot).encode())
    return file


def remove(folder: Path, project_id: str) -> None:
    """Remove `{projectId}.md` and the backups of a project. Missing ones are no error.

    Raises:
        BadProjectId: the id could leave the folder.
        OSError: a file cannot be removed.
    """
    name = checked_id(project_id)
    (folder / f"{name}.md").unlink(missing_ok=True)
    # Its run may remove the same files at the same time, and writes none after that.
    shutil.rmtree(folder / "backups" / name, onerror=_unless_missing)


def _unless_missing(_remove: object, _path: str, failure: Any) -> None:
    if not isinstance(failure[1], FileNotFoundError):
        raise failure[1]


def replace_file(file: Path, content: bytes) -> None:
    """Replace a file in one step. Only its owner may read it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(part.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def render(snapshot: ProjectSnapshot) -> str:
    """Return the Markdown of a snapshot."""
    front = {
        "projectId": snapshot.project_id,
        "title": snapshot.title,
        "status": snapshot.status,
        "progress": snapshot.progress,
        "progressMessage": snapshot.progress_message,
        "createdAt": snapshot.created_at,
        "updatedAt": snapshot.updated_at,
    }
    read = {page.requested_url for page in snapshot.pages} | {page.url for page in snapshot.pages}
    # A JSON text is a YAML text too.
    lines = ["---", *(f"{name}: {json.dumps(value)}" for name, value in front.items()), "---", ""]
    lines += [f"# {inline(snapshot.title)}", "", "## Search results", ""]
    lines += ["| Source | Title | URL | Quality | Crawled |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {cell(each.source)} | {cell(each.title)} | {cell(each.url)} | {each.quality:.2f} | "
        f"{'yes' if each.url in read else 'no'} |"
        for each in snapshot.results
    ]
    if len(snapshot.results) > MAX_RESULTS:
        lines += ["", "## Compressed results", "", table(snapshot.results)]
    lines += ["", "## Pages", ""]
    for page in snapshot.pages:
        lines += [f"### {inline(page.title or page.url)}", "", inline(page.url), ""]
        lines += [quoted(page.text), ""]
        for kind, names in page.entities.items():
            lines += [f"- {inline(kind)}: {inline(', '.join(names))}"] if names else []
        lines += [""] if page.entities else []
    lines += ["## Analysis", ""]
    if snapshot.analysis is None:
        lines += ["There is no analysis yet.", ""]
    else:
        lines += [inline(snapshot.analysis.overview) or "Nothing was found.", ""]
        parts = {
            "Features": snapshot.analysis.features,
            "Competitors": snapshot.analysis.competitors,
            **{name.capitalize(): each for name, each in snapshot.analysis.swot.items()},
        }
        for name, found in parts.items():
            lines += [f"### {name}", "", *(f"- {inline(each.text)}" for each in found), ""]
    lines += ["## Citations", ""]
    lines += [
        f"- [{each.id}] {inline(each.quote)} ({inline(each.url)})" for each in snapshot.citations
    ]
    return "\n".join([*lines, "", _BEGIN + _hidden(as_dict(snapshot)) + _END, ""])


def parse(text: str) -> ProjectSnapshot:
    """Return the snapshot of a state file.

    Raises:
        DamagedState: the file is cut or was changed.
    """
    _, begin, rest = text.rpartition(_BEGIN)
    content, end, _ = rest.rpartition(_END)
    if not begin or not end:
        raise DamagedState("The state file has no state at its end")
    try:
        return from_dict(ProjectSnapshot, json.loads(content))
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedState(f"The state at the end of the file is damaged: {error}") from error


def _hidden(value: dict[str, Any]) -> str:
    # Neither "--" nor ">" can end the comment, and no page can begin another one.
    made = json.dumps(value)
    return made.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
