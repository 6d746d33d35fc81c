"""The register: load Singapore's company register (ACRA) from CSV, and search it.

The file is read as a stream and written in short transactions, because the server writes to the
same database. Loading a file again updates companies by their UEN.
"""

import asyncio
import csv
import io
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, select, union

from my_agent.icp_finder.model import Candidate, Company, Icp, RegisterAnswer, Scored
from my_agent.icp_finder.records.statements import run, upsert
from my_agent.icp_finder.records.store import now
from my_agent.icp_finder.records.tables import companies
from my_agent.icp_finder.search import company_names, likeness, ssic
from my_agent.icp_finder.search.scoring import (
    SECONDARY,
    WEIGHTS,
    around_singapore,
    excluding,
    score,
)
from my_agent.tables import tables
from threadhold.tables import SHARED

NEEDED = ("uen", "entity_name", "entity_status_description", "primary_ssic_code")
"""Columns that a register must have."""

# Rows per transaction: it takes about ten milliseconds, during which the server waits.
BATCH = 500
MAX_CELL = 1000
# Cell values that mean "no value" in the register.
EMPTY = frozenset(("", "na", "n/a", "-", "null", "none"))


class RegisterError(RuntimeError):
    """A file is not a register. The message is the reason."""


@dataclass(frozen=True)
class BadRow:
    """A skipped row.

    Attributes:
        line: number of its last line in the file, from 1.
        why: the reason.
    """

    line: int
    why: str


@dataclass
class Ingested:
    """Number of rows by outcome.

    Attributes:
        kept: rows that were stored.
        bad: rows that were skipped.
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
    """Load a file into the table `companies`. Blocks.

    Args:
        path: the file, in UTF-8; its first line names the columns, in any order and case.
        tenant_id: the owner of the companies; empty: shared by all tenants.
        report: called with each skipped row.
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
    # If two rows have the same UEN, the last one counts: a statement must not touch a row twice.
    unique = list({row["uen"]: row for row in rows}.values())
    # All rows of a file have the same tenant.
    tenant = unique[0]["tenant_id"] if unique else None
    tables.write(lambda connection: upsert(connection, companies, unique), tenant)


def parse(lines: Iterable[str]) -> Iterator[dict[str, Any] | BadRow]:
    """Yield the companies of a register, and its invalid rows, in the order of the file.

    Args:
        lines: lines of the file, the column names first.

    Raises:
        RegisterError: the column names are missing or incomplete.
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
            why = (
                "the row has more or fewer cells than columns"
                if "zip()" in str(error)
                else str(error)
            )
            yield BadRow(reader.line_num, why)


def _header(reader: Any) -> list[str]:
    try:
        names = [cell.strip().lower() for cell in next(reader, [])]
    except csv.Error as error:
        raise RegisterError(f"The first line must name the columns: {error}") from error
    if missing := [name for name in NEEDED if name not in names]:
        raise RegisterError(
            f"The first line lacks {', '.join(missing)}: a register has the columns of ACRA's "
            "public data set"
        )
    return names


def _company(row: dict[str, str]) -> dict[str, Any]:
    """Convert a row of the file into a row of the table. Raises ValueError with the reason."""
    cells = {name: _cell(value) for name, value in row.items()}
    uen = cells["uen"].upper()
    if not (8 <= len(uen) <= 10 and uen.isascii() and uen.isalnum()):
        raise ValueError(f"uen {uen[:20]!r} is invalid" if uen else "uen is missing")
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
        raise ValueError("a cell contains a NUL byte")
    return "" if text.lower() in EMPTY else text


def _code(cells: dict[str, str], name: str) -> str:
    written = cells.get(name, "")
    code = ssic.normal(written)
    if written and not code:
        raise ValueError(f"{name} {written[:20]!r} is invalid")
    return code


def _date(written: str) -> str:
    try:
        return date.fromisoformat(written[:10]).isoformat() if written else ""
    except ValueError as error:
        raise ValueError(f"registration_incorporation_date {written[:20]!r} is invalid") from error


# --- search -------------------------------------------------------------------

# Companies that are read at a time.
PAGE = 2000
# Activities that are compared with the customers, those of the best kinds of business first. The
# classification has a thousand.
ACTIVITIES = 300
# Companies whose own names are compared with the customers, for each wanted one.
FINALISTS = 2
# Totals that differ by less count as equal in the order of industries.
DIGITS = 2


@dataclass(frozen=True)
class Ranked:
    """The answer of the register.

    Attributes:
        answer: whether it gave companies, or why not.
        codes: the SSIC codes that were asked for.
        found: the companies with their scores, best first.
        matching: number of companies that were ranked.
    """

    answer: RegisterAnswer
    codes: Sequence[str] = ()
    found: Sequence[Scored] = ()
    matching: int = 0


@dataclass
class _Entry:
    """A company in the ranking.

    Attributes:
        quick: its total without its own name, plus what the name says.
        place: index of its kind of business.
    """

    row: Row[Any]
    quick: float
    place: int


async def rank(
    tenant_id: str,
    company: Company,
    icp: Icp,
    *,
    limit: int,
    without: Collection[str] = (),
    details: Mapping[str, Mapping[str, Any]] | None = None,
    feedback: Mapping[str, float] | None = None,
) -> Ranked:
    """Rank all active companies of the ICP's industries, and return the best.

    SQL gives every company whose main or other code is in an industry. What they do is rated once
    for each kind of business, then the best are rated by all that is known of them. Of equally good
    companies, those of different industries take turns, and the older one comes first.

    Args:
        tenant_id: the tenant; its own companies and the shared ones are ranked.
        company: the tenant's company; candidates should resemble its customers.
        icp: the ICP. If its regions exclude Singapore, nothing is found.
        limit: maximum number of companies.
        without: keys of candidates to leave out.
        details: what enrichment has found about candidates, by key.
        feedback: what the users think of candidates, from -1 to 1, by key.
    """
    codes = ssic.codes(icp["industries"])
    if not codes:
        return Ranked("no_codes")
    if limit < 1:
        return Ranked("not_asked", codes)
    if icp["regions"] and not around_singapore(icp["regions"]):
        return Ranked("elsewhere", codes)
    known = frozenset(without)

    def read(connection: Connection) -> list[Row[Any]] | None:
        holds = select(companies.c.uen).where(companies.c.tenant_id.in_((SHARED, tenant_id)))
        if connection.execute(holds.limit(1)).first() is None:
            return None
        found = connection.execution_options(yield_per=PAGE).execute(_matching(tenant_id, codes))
        # A company may occur twice: shared, and as the tenant's own, which counts.
        return list({row.uen: row for row in found if f"uen:{row.uen}" not in known}.values())

    rows = await run(read, tenant_id)
    if rows is None:
        return Ranked("empty", codes)
    found = await asyncio.to_thread(_best, rows, company, icp, limit, details or {}, feedback or {})
    return Ranked("found" if found else "nothing", codes, found, len(rows))


def _matching(tenant_id: str, codes: Sequence[str]) -> Select[Any]:
    """Select the active companies with a code in one of the industries."""

    def within(code: str) -> list[Any]:
        prefixes = ssic.prefixes(code)
        # A range and not LIKE: every collation sorts digits alike, and the range can use an index.
        low, high = prefixes[0].ljust(5, "0"), prefixes[-1].ljust(5, "9")
        return [
            column.between(low, high)
            for column in (companies.c.primary_ssic, companies.c.secondary_ssic)
        ]

    needed = [
        column
        for column in companies.c
        if column.name not in ("address", "postal_code", "updated_at", "status", "entity_type")
    ]
    asks = [
        select(*needed).where(
            companies.c.tenant_id.in_((SHARED, tenant_id)),
            companies.c.is_live,
            condition,
        )
        # Each condition is a query of its own, so that each can use its index.
        for condition in itertools.chain.from_iterable(map(within, codes))
    ]
    found = union(*asks).subquery()
    # The tenant's own rows come last.
    return select(found).order_by(found.c.tenant_id, found.c.uen)


def _best(
    rows: Sequence[Row[Any]],
    company: Company,
    icp: Icp,
    limit: int,
    details: Mapping[str, Mapping[str, Any]],
    feedback: Mapping[str, float],
) -> list[Scored]:
    """Return the best companies with their scores. Blocks."""
    if icp.get("exclusions"):
        is_excluded = excluding(icp)
        rows = [row for row in rows if not is_excluded(_candidate(row))]
    kinds: dict[tuple[str, ...], int] = {}
    places = [kinds.setdefault(_kind(row), len(kinds)) for row in rows]
    examples = [
        replace(_candidate(row), key="", name="", uen=None) for row in _firsts(rows, places)
    ]
    plain = [score(each, company, icp) for each in examples]
    closest = sorted(range(len(examples)), key=lambda at: -plain[at].total)
    alike = _alike([_activities(examples[at]) for at in closest], company)
    of_kind = dict(zip(closest, alike, strict=True))
    totals = [
        score(each, company, icp, likeness=of_kind[at]).total for at, each in enumerate(examples)
    ]
    entries = [
        _Entry(row, totals[place] + _said(row, examples[place], icp), place)
        for row, place in zip(rows, places, strict=True)
    ]
    wanted = [e for e in entries if (key := f"uen:{e.row.uen}") in feedback or key in details]
    # Industries take turns here as well, so that each one has finalists.
    queue = _turns(
        [((-entry.quick,), entry.row.primary_ssic, _age(entry.row)) for entry in entries]
    )
    first = [entries[at] for at in queue[: FINALISTS * limit]]
    finalists = list({entry.row.uen: entry for entry in (*first, *wanted)}.values())
    found = [_candidate(entry.row) for entry in finalists]
    found = [replace(each, details=details.get(each.key, {})) for each in found]
    ratings = likeness.measure(
        [f"{each.about}. {company_names.plain(each.name)}" for each in found], company
    )
    scored = [
        # What all companies of the kind do counts as well as what this one's name says.
        Scored(
            each,
            score(
                each,
                company,
                icp,
                likeness=_higher(of_kind[entry.place], rating),
                feedback=feedback.get(each.key, 0.0),
            ),
        )
        for entry, each, rating in zip(finalists, found, ratings, strict=True)
    ]
    return _in_turns(scored, [_age(entry.row) for entry in finalists])[:limit]


def _alike(activities: Sequence[list[str]], company: Company) -> list[float | None]:
    """Rate kinds of business, given as their activities: the second one counts less."""
    different = list(dict.fromkeys(itertools.chain.from_iterable(activities)))[:ACTIVITIES]
    ratings = dict(zip(different, likeness.measure(different, company), strict=True))
    found = []
    for names in activities:
        rated = [
            (ratings.get(name), 1.0 if at == 0 else SECONDARY) for at, name in enumerate(names)
        ]
        found.append(max((r * factor for r, factor in rated if r is not None), default=None))
    return found


def _activities(candidate: Candidate) -> list[str]:
    return candidate.about.split("; ") if candidate.about else []


def _in_turns(found: Sequence[Scored], ages: Sequence[tuple[str, str]]) -> list[Scored]:
    """Sort by total, then by evidence, then in turns."""
    rated = [
        ((-each.score.total, -each.score.proven), (each.candidate.ssic or [""])[0], age)
        for each, age in zip(found, ages, strict=True)
    ]
    return [found[at] for at in _turns(rated)]


def _turns(rated: Sequence[tuple[tuple[float, ...], str, tuple[str, str]]]) -> list[int]:
    """Return the order of companies, given their ratings (lowest first), codes and ages.

    Of companies with equal ratings, divisions take turns, so that none fills the list alone.
    """
    turns: Counter[tuple[Any, ...]] = Counter()
    keys: list[tuple[Any, ...]] = []
    for at in sorted(range(len(rated)), key=lambda each: (rated[each][0], rated[each][2])):
        ratings, code, age = rated[at]
        level = tuple(round(each, DIGITS) for each in ratings)
        turns[level, code[:2]] += 1
        keys.append((level, turns[level, code[:2]], age, at))
    return [key[-1] for key in sorted(keys)]


def _kind(row: Row[Any]) -> tuple[str, ...]:
    return (row.primary_ssic, row.secondary_ssic, row.primary_activity, row.secondary_activity)


def _firsts(rows: Sequence[Row[Any]], places: Sequence[int]) -> list[Row[Any]]:
    """Return the first company of each kind, in the order of the kinds."""
    firsts: dict[int, Row[Any]] = {}
    for row, place in zip(rows, places, strict=True):
        firsts.setdefault(place, row)
    return [firsts[place] for place in range(len(firsts))]


def _said(row: Row[Any], of_kind: Candidate, icp: Icp) -> float:
    """Rate the keywords and industries that only the company's name says."""
    name, known = row.name.casefold(), of_kind.about.casefold()
    wanted = [(word, WEIGHTS["keywords"]) for word in icp["keywords"] if word.strip()]
    wanted += [(word, WEIGHTS["industry"]) for word in icp["industries"]]
    hits = [
        weight for word, weight in wanted if (low := word.casefold()) in name and low not in known
    ]
    return sum(hits) / max(len(wanted), 1)


def _higher(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _age(row: Row[Any]) -> tuple[str, str]:
    """Return what sorts older companies first; those without a date come last."""
    return row.registered_on or "9999", row.uen


def _candidate(row: Row[Any]) -> Candidate:
    told = (row.primary_activity, row.secondary_activity)
    # The public register is in capital letters.
    activities = [each.capitalize() if each.isupper() else each for each in told if each]
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
