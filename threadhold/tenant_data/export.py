"""Export: write a tenant's rows as JSON lines, one file for each table. They are decrypted."""

import base64
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langgraph_runtime_sql.audit import recorder
from langgraph_runtime_sql.gate import entries
from langgraph_runtime_sql.gate.operations import TENANT_EXPORT
from langgraph_runtime_sql.migrations import open_database
from threadhold.tenant_data import reading
from threadhold.tenant_data.errors import CannotExport, UnknownTenant
from threadhold.tenant_data.opening import Opening
from threadhold.tenant_data.reading import Transaction
from threadhold.tenant_data.rules import Rule

MANIFEST = "manifest.json"
FILES = "files"


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    Attributes:
        rows: The number of rows of each table.
        files: The number of copied files.
        missing: Paths of files that no longer exist.
    """

    rows: dict[str, int]
    files: int
    missing: list[str]


def export(url: str, tenant: str, folder: Path, rules: Sequence[Rule]) -> Exported:
    """Write the rows and files of a tenant into a new folder. Servers may run.

    All tables are of the same moment. Only the user of this process can read the folder.

    Args:
        url: The database.
        tenant: The tenant.
        folder: A folder that does not exist or is empty.
        rules: The rules of all tables.

    Raises:
        UnknownTenant: the database has no tenants, or no row of this one.
        CannotExport: the folder is not empty or cannot be written.
        CannotErase: a table has no rule.
        CannotDecrypt: the database is encrypted, and its master key is not configured; or a row
            cannot be decrypted. No file remains.
    """
    with reading.snapshot(url) as transaction:
        reading.check_tenant(transaction, tenant)
        known = [rule for rule in transaction.rules(rules) if rule.export]
        if not any(transaction.count(rule, tenant) for rule in known):
            raise UnknownTenant(f"The database has no row of the tenant {tenant!r}")
        opening = Opening(transaction.connection(tenant), tenant)
        opening.check()
        try:
            with _complete_or_none(folder):
                # Before the first row: no export is without its entry.
                _enter(url, tenant)
                return _write(transaction, tenant, folder, known, opening)
        except OSError as error:
            raise CannotExport(f"The export cannot be written: {error}") from error


@contextmanager
def _complete_or_none(folder: Path) -> Iterator[None]:
    """Make the folder, and remove what the block has written into it if it fails.

    Raises:
        CannotExport: the folder is not empty.
    """
    existed = folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise CannotExport(f"{folder} is not empty: name a new folder")
    try:
        yield
    except BaseException:
        shutil.rmtree(folder)
        if existed:
            folder.mkdir(mode=0o700)
        raise


def _enter(url: str, tenant: str) -> None:
    """Enter the export in the audit log."""
    database = open_database(url, exclusive=False)
    try:
        database.start_writer()
        with recorder.by_command("tenant export"):
            database.write_sync(
                lambda conn: entries.record(conn, TENANT_EXPORT, None, tenant=tenant)
            )
    finally:
        database.close()


def _write(
    transaction: Transaction, tenant: str, folder: Path, rules: list[Rule], opening: Opening
) -> Exported:
    counts: dict[str, int] = {}
    paths: dict[str, None] = {}
    for rule in rules:
        counts[rule.table] = 0
        with os.fdopen(_create(folder / f"{rule.table}.jsonl"), "w", encoding="utf-8") as file:
            for row in reading.rows(transaction, rule, tenant):
                opening.open(rule.table, row)
                if rule.table == "threads":
                    reading.complete(transaction, row)
                file.write(json.dumps(row, default=_plain) + "\n")
                counts[rule.table] += 1
                if rule.files is not None and Path(str(row[rule.files])).is_absolute():
                    paths[str(row[rule.files])] = None
    missing = _copy(list(paths), folder / FILES)
    manifest = {"tenant": tenant, "at": datetime.now(UTC).isoformat(), "rows": counts}
    with os.fdopen(_create(folder / MANIFEST), "w", encoding="utf-8") as file:
        json.dump({**manifest, "files": [p for p in paths if p not in missing]}, file, indent=2)
    return Exported(counts, len(paths) - len(missing), missing)


def _copy(paths: list[str], folder: Path) -> list[str]:
    """Copy files as `1-name`, `2-name` and so on; return the paths that do not exist."""
    missing = []
    if paths:
        folder.mkdir(mode=0o700)
    for number, path in enumerate(map(Path, paths), start=1):
        if not path.is_file():
            missing.append(str(path))
            continue
        with path.open("rb") as source:
            target = os.fdopen(_create(folder / f"{number}-{path.name}"), "wb")
            with target:
                shutil.copyfileobj(source, target)
    return missing


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    return value.isoformat() if isinstance(value, datetime) else str(value)
