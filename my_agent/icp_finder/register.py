"""The register: companies of a CSV file as Singapore's ACRA publishes it, and finding them again.

A file is read as a stream and written in short transactions: the server writes to the same
database. Reading it again brings companies up to date by their UEN.
"""

import csv
import io
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, case, literal, select

from my_agent.database import database
from my_agent.icp_finder import ssic
from my_agent.icp_finder.model import Candidate, Icp
from my_agent.icp_finder.records import now
from my_agent.icp_finder.scoring import around_singapore
from my_agent.icp_finder.statements import run, upsert
from my_agent.icp_finder.tables import SHARED, companies

NEEDED = ("uen", "entity_name", "entity_status_description", "primary_ssic_code")
"""Columns that a register has at least."""

# Rows of one transaction: some ten milliseconds, in which the server waits.
BATCH = 500
MAX_CELL = 1000
# Ways in which the register says that there is nothing.
EMPTY = frozenset(("", "na", "n/a", "-", "null", "none"))


class RegisterError(RuntimeError):
    """A file is no register; the message says why."""


@dataclass(frozen=True)
class BadRow:
    """A row that was skipped.

    Attributes:
        line: its last line in the file, from 1.
        why: what is wrong with it.
    """

    line: int
    why: str


@dataclass
class Ingested:
    """What became of a file's rows.

    Attributes:
        kept: how many are in the database now.
        bad: those that were skipped.
    """

    kept: int = 0
    bad: int = 0


def ingest(
    path: Path,
    tenant_id: str = SHARED,
    *,
    report: Callable[[BadRow], None],
    progress: Callable[[int], None] = lambda _: None,
) -> Ingested:
    """Bring a file into `companies`. Blocks.

    Args:
        path: the file, in UTF-8, with a line of column names in any order and case.
        tenant_id: whose the companies are to be; shared by all tenants if empty.
        report: called with each row that is skipped.
        progress: called with the number of bytes read since the last call.

    Raises:
        RegisterError: the file cannot be read, or lacks columns.
    """
    done, at = Ingested(), 0
    try:
        with (
            path.open("rb") as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines,
        ):
            rows = parse(lines)
            while batch := list(itertools.islice(rows, BATCH)):
                bad = [row for row in batch if isinstance(row, BadRow)]
                good = [{**row, "tenant_id": tenant_id} for row in batch if isinstance(row, dict)]
                _keep(good)
                for each in bad:
                    report(each)
                done.kept += len(good)
                done.bad += len(bad)
                progress(file.tell() - at)
                at = file.tell()
    except UnicodeDecodeError as error:
        raise RegisterError(f"{path} is not in UTF-8: save it as CSV UTF-8") from error
    except OSError as error:
        raise RegisterError(f"{path}: {error.strerror}") from error
    return done


def _keep(rows: list[dict[str, Any]]) -> None:
    # Of two rows of one company the last counts; a statement may not touch a row twice.
    unique = list({row["uen"]: row for row in rows}.values())
    # All of one tenant, or all shared.
    with database().write(unique[0]["tenant_id"] if unique else None) as connection:
        upsert(connection, companies, unique)


def parse(lines: Iterable[str]) -> Iterator[dict[str, Any] | BadRow]:
    """The companies of a register, and the rows that are none, in the file's order.

    Args:
        lines: the file's, the column names first.

    Raises:
        RegisterError: there are no column names, or some are missing.
    """
    reader = csv.reader(lines, strict=True)
    names = _header(reader)
    while True:
        try:
            cells = next(reader)
            if cells:
                yield _company(dict(zip(names, cells, strict=True)))
        except StopIteration:
            return
        except (ValueError, csv.Error) as error:
            why = "another number of cells than columns" if "zip()" in str(error) else str(error)
            yield BadRow(reader.line_num, why)


def _header(reader: Any) -> list[str]:
    try:
        names = [cell.strip().lower() for cell in next(reader, [])]
    except csv.Error as error:
        raise RegisterError(f"The first line is no line of column names: {error}") from error
    if missing := [name for name in NEEDED if name not in names]:
        raise RegisterError(
            f"The first line lacks {', '.join(missing)}: a register has the columns of ACRA's "
            "public data set"
        )
    return names


def _company(row: dict[str, str]) -> dict[str, Any]:
    """A row of the table. Raises ValueError: it is no company; says why."""
    cells = {name: _cell(value) for name, value in row.items()}
    uen = cells["uen"].upper()
    if not (8 <= len(uen) <= 10 and uen.isascii() and uen.isalnum()):
        raise ValueError(f"uen {uen[:20]!r} is none" if uen else "uen is missing")
    if not cells["entity_name"]:
        raise ValueError("entity_name is missing")
    status = cells["entity_status_description"]
    return {
        "uen": uen,
        "name": cells["entity_name"],
        "entity_type": cells.get("entity_type_description", ""),
        "status": status,
        "is_live": status.lower().startswith("live"),
        "registered_on": _date(cells.get("registration_incorporation_date", "")),
        "primary_ssic": _code(cells, "primary_ssic_code"),
        "primary_activity": cells.get("primary_ssic_description", ""),
        "secondary_ssic": _code(cells, "secondary_ssic_code"),
        "secondary_activity": cells.get("secondary_ssic_description", ""),
        "address": " ".join(filter(None, (cells.get("block"), cells.get("street_name")))),
        "postal_code": cells.get("postal_code", ""),
        "updated_at": now(),
    }


def _cell(value: str) -> str:
    text = " ".join(value.split())[:MAX_CELL]
    if "\0" in text:
        raise ValueError("a cell has a zero byte")
    return "" if text.lower() in EMPTY else text


def _code(cells: dict[str, str], name: str) -> str:
    written = cells.get(name, "")
    code = ssic.normal(written)
    if written and not code:
        raise ValueError(f"{name} {written[:20]!r} is none")
    return code


def _date(written: str) -> str:
    try:
        return date.fromisoformat(written[:10]).isoformat() if written else ""
    except ValueError as error:
        raise ValueError(f"registration_incorporation_date {written[:20]!r} is none") from error


# --- finding them again -----------------------------------------------------


async def find(
    tenant_id: str,
    codes: Sequence[str],
    icp: Icp,
    *,
    limit: int,
    without: Collection[str] = (),
) -> list[Candidate]:
    """Companies in business of these industries, by turns, those with the keywords first.

    Args:
        tenant_id: who asks; its own companies are found, and those shared by all.
        codes: of industries, surest first.
        icp: its keywords count, and its regions: the companies are all in Singapore.
        limit: how many at most.
        without: keys of candidates that are known already.
    """
    if not codes or limit < 1 or (icp["regions"] and not around_singapore(icp["regions"])):
        return []
    known, new = frozenset(without), dict[str, Candidate]()

    def work(connection: Connection) -> list[Candidate]:
        # What a company does mainly before what others do beside it.
        for column in (companies.c.primary_ssic, companies.c.secondary_ssic):
            asks = [_search(tenant_id, column, code, icp["keywords"]) for code in codes]
            # A company may be there twice, once for all tenants and once for this one.
            most = 2 * limit + len(without)
            found = [connection.execute(ask.limit(most)).all() for ask in asks]
            # The first of each industry, then the second of each, so that a large one leaves room.
            for row in itertools.chain.from_iterable(itertools.zip_longest(*found)):
                if row is not None and f"uen:{row.uen}" not in known:
                    new.setdefault(f"uen:{row.uen}", _candidate(row))
            if len(new) >= limit:
                break
        return list(new.values())[:limit]

    return await run(work, tenant_id)


def _search(tenant_id: str, column: Any, code: str, keywords: Sequence[str]) -> Select[Any]:
    """Companies in business whose code in `column` is of an industry, most keywords first."""
    activities = companies.c.primary_activity + literal(" ") + companies.c.secondary_activity
    said = companies.c.name + literal(" ") + activities
    hits = [said.icontains(word, autoescape=True) for word in keywords if word.strip()]
    asked_for = sum((case((hit, 1), else_=0) for hit in hits), literal(0))
    prefixes = ssic.prefixes(code)
    return (
        select(companies)
        # Between two codes and not LIKE: every collation orders digits alike, and an index is used.
        .where(
            companies.c.tenant_id.in_((SHARED, tenant_id)),
            companies.c.is_live,
            column >= prefixes[0].ljust(5, "0"),
            column <= prefixes[-1].ljust(5, "9"),
        )
        .order_by(*([asked_for.desc()] if hits else []), companies.c.name, companies.c.uen)
    )


def _candidate(row: Row[Any]) -> Candidate:
    activities = [each for each in (row.primary_activity, row.secondary_activity) if each]
    return Candidate(
        key=f"uen:{row.uen}",
        name=row.name,
        source="register",
        uen=row.uen,
        ssic=[code for code in (row.primary_ssic, row.secondary_ssic) if code],
        industry=(activities or [ssic.title(row.primary_ssic)])[0],
        region="Singapore",
        about="; ".join(activities),
    )
