"""`python -m bench.icp ranking`: measure how well the register is ranked.

A made-up register of 50,000 companies has, for each profile, some companies that fit well (grade 3),
fit (2) or fit a little (1). Others only seem to: their names come first in the alphabet, have the right
words, or they were struck off. nDCG@10 compares the first ten with the best possible ten.
"""

import asyncio
import csv
import math
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.icp import made_up
from bench.report import Line
from my_agent.companies import register as registered
from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.icp_finder.search import register
from my_agent.tables import tables

COMPANIES = 50_000
FIRST = 10
# Required mean over the profiles: a change that makes the ranking worse fails here.
OWED = 0.9
TENANT = "bench"


@dataclass(frozen=True)
class Planted:
    """Companies that are planted for a profile.

    Attributes:
        grade: how well they fit, from 0 to 3.
        count: their number.
        name: what follows the first word of their names.
        code: their main SSIC code.
        activity: what they do.
        other: code and activity of their second business.
        first: the first word of their names; `Z` sorts them last.
        live: whether they are active.
    """

    grade: int
    count: int
    name: str
    code: str
    activity: str
    other: tuple[str, str] = ("na", "na")
    first: str = "ZULU"
    live: bool = True


@dataclass(frozen=True)
class Profile:
    """A profile with its customers and the companies that are planted for it.

    Attributes:
        others: grades of the other companies of the register by their main code.
    """

    name: str
    icp: Icp
    customers: tuple[str, ...]
    others: dict[str, int]
    planted: tuple[Planted, ...]


def icp(*industries: str, keywords: Sequence[str] = (), regions: Sequence[str] = ()) -> Icp:
    return {
        "industries": list(industries),
        "sizes": [],
        "regions": list(regions),
        "keywords": list(keywords),
    }


PROFILES = (
    Profile(
        "cold chain",
        icp("Refrigerated road transport", keywords=["cold chain"], regions=["Singapore"]),
        (
            "We move chilled and frozen food with our fleet of refrigerated trucks.",
            "Temperature-controlled delivery of vaccines and fresh produce by road, day and night.",
        ),
        {"49232": 1},
        (
            Planted(
                3, 8, "COLD CHAIN LOGISTICS", "49232", "Chilled and frozen goods transport by road"
            ),
            Planted(2, 8, "HAULIERS", "49232", "Chilled and frozen goods transport by road"),
            Planted(1, 30, "CARRIERS", "49219", "Chartered coach services"),
            Planted(0, 300, "TAXIS", "49212", "Taxi services", first="AAA"),
            Planted(0, 10, "COLD CHAIN LAW", "69100", "Legal services", first="AAA"),
            Planted(0, 10, "COLD CHAIN LOGISTICS", "49232", "Chilled goods transport", live=False),
        ),
    ),
    Profile(
        "software for finance",
        icp("Software development", keywords=["payments"]),
        (
            "Our software helps banks to issue cards and to settle payments in real time.",
            "A platform for invoices, accounting and payments of small companies.",
        ),
        {"62011": 1, "62021": 1},
        (
            Planted(3, 9, "PAYMENTS SOFTWARE", "62011", "Development of software for finance"),
            Planted(2, 9, "SYSTEMS", "62011", "Development of software for finance"),
            Planted(1, 20, "CONSULTANTS", "62021", "IT consultancy"),
            Planted(0, 400, "GAMES", "58202", "Publishing of games", first="AAA"),
            Planted(0, 10, "PAYMENTS CLINIC", "86201", "Medical clinics", first="AAA"),
        ),
    ),
    Profile(
        "food wholesale, no keywords",
        icp("Wholesale trade"),
        (
            "We import frozen seafood and meat, and deliver it to restaurants and supermarkets.",
            "Wholesaler of fruit, vegetables and dairy products.",
        ),
        {"46309": 2},
        (
            Planted(3, 12, "PROVISIONS", "46302", "Wholesale of seafood, meat and fresh produce"),
            Planted(1, 30, "BEVERAGES", "46307", "Wholesale of wine and spirits"),
            Planted(0, 500, "TRADING", "46521", "Wholesale of electronic components", first="AAA"),
            Planted(0, 10, "SEAFOOD", "46302", "Wholesale of seafood", live=False),
        ),
    ),
    Profile(
        "medical devices",
        icp("Medical device manufacturing", keywords=["implants", "sterile"]),
        ("We make orthopaedic implants and surgical instruments for hospitals in Asia.",),
        {"32502": 1},
        (
            Planted(
                3,
                6,
                "STERILE IMPLANTS",
                "32502",
                "Manufacture of implants and surgical instruments",
            ),
            Planted(2, 10, "MEDTECH", "32502", "Manufacture of implants and surgical instruments"),
            Planted(
                1,
                20,
                "TOYS",
                "32401",
                "Manufacture of toys",
                other=("32502", "Surgical instruments"),
            ),
            Planted(0, 300, "GYM EQUIPMENT", "32300", "Manufacture of sports goods", first="AAA"),
        ),
    ),
    Profile(
        "hotels and restaurants",
        icp("Hotels", "Restaurants", keywords=["halal"]),
        ("A group of halal restaurants and hotels for families.",),
        {"55101": 1, "56111": 1},
        (
            Planted(3, 5, "HALAL KITCHEN", "56111", "Halal restaurants"),
            Planted(3, 5, "HALAL RESORT", "55101", "Hotels with halal restaurants"),
            Planted(1, 40, "BISTRO", "56111", "Restaurants"),
            Planted(0, 400, "HALAL LAUNDRY", "96011", "Laundry services", first="AAA"),
            Planted(0, 200, "BARS", "56301", "Bars and pubs", first="AAA"),
        ),
    ),
)


def rows(count: int = COMPANIES) -> Iterator[tuple[str, ...]]:
    """Yield the register: the planted companies of all profiles, and others up to `count`."""
    number = 0
    for profile in PROFILES:
        for planted in profile.planted:
            for _ in range(planted.count):
                yield _row(
                    number,
                    f"{planted.first} {number:05} {planted.name}",
                    planted.code,
                    planted.activity,
                    planted.other,
                    planted.live,
                )
                number += 1
    pick = random.Random(1)
    while number < count:
        word, code, activity = pick.choice(made_up.ACTIVITIES)
        _, other_code, other = pick.choice(made_up.ACTIVITIES)
        second = (other_code, other) if pick.random() < 0.2 else ("na", "na")
        name = f"{pick.choice(made_up.NAMES)} {number:05} {word}"
        yield _row(number, name, code, activity, second, pick.random() < 0.8)
        number += 1


def _row(
    number: int, name: str, code: str, activity: str, other: tuple[str, str], live: bool
) -> tuple[str, ...]:
    return (
        f"T{number:07}Z",
        f"{name} (MADE UP) PTE. LTD.",
        "Live" if live else "Struck Off",
        f"{1990 + number % 30}-01-01",
        code,
        activity.upper(),
        *other,
    )


HEADER = (
    *("uen", "entity_name", "entity_status_description", "registration_incorporation_date"),
    *("primary_ssic_code", "primary_ssic_description"),
    *("secondary_ssic_code", "secondary_ssic_description"),
)


def grades(profile: Profile, count: int = COMPANIES) -> dict[str, int]:
    """Return the grade of each company that fits a profile, by its key."""
    planted = [each for of in PROFILES for one in of.planted for each in [(of, one)] * one.count]
    found = {}
    for at, (uen, _, status, _, code, *_) in enumerate(rows(count)):
        if at < len(planted):
            grade = planted[at][1].grade if planted[at][0] is profile else 0
        else:
            grade = profile.others.get(code, 0) if status == "Live" else 0
        if grade:
            found[f"uen:{uen}"] = grade
    return found


def ndcg(ranked: Sequence[int], best: Sequence[int]) -> float:
    """Return the discounted gain of the first ten grades, as a share of the best possible one."""

    def gain(of: Sequence[int]) -> float:
        return sum((2.0**grade - 1) / math.log2(at + 2) for at, grade in enumerate(of[:FIRST]))

    share: float = gain(ranked) / gain(sorted(best, reverse=True))
    return share


async def measure(profile: Profile, known: dict[str, int]) -> tuple[float, int, float]:
    """Rank the register for a profile. Return nDCG@10, the matching companies, and the seconds."""
    sites: list[Site] = [
        {
            "website": f"https://c{at}.example",
            "domain": f"c{at}.example",
            "name": "",
            "about": about,
        }
        for at, about in enumerate(profile.customers)
    ]
    own: Site = {"website": "https://own.example", "domain": "own.example", "name": "", "about": ""}
    company: Company = {"site": own, "customers": sites}
    start = time.perf_counter()
    given = await register.rank(TENANT, company, profile.icp, limit=50)
    taken = time.perf_counter() - start
    ranked = [known.get(each.candidate.key, 0) for each in given.found]
    return ndcg(ranked, list(known.values())), given.matching, taken


def lines(count: int = COMPANIES) -> list[Line]:
    """Print nDCG@10 of each profile, and return the mean.

    Args:
        count: size of the register.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "register.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([HEADER, *rows(count)])
        tables.use(f"sqlite:///{folder}/data.db")
        try:
            registered.ingest(path, report=print)
            found = [asyncio.run(measure(each, grades(each, count))) for each in PROFILES]
        finally:
            tables.close()
            tables.use(None)
    for profile, (score, matching, taken) in zip(PROFILES, found, strict=True):
        print(f"{profile.name:30} nDCG@10 {score:.3f}  {matching:6,} matching  {taken:5.2f} s")
    mean = sum(score for score, _, _ in found) / len(found)
    name = f"ranking of {count:,} companies, mean nDCG@10 of {len(PROFILES)} profiles"
    return [Line(name, mean, "", limit=OWED, better="higher")]
