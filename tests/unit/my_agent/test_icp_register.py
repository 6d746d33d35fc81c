"""Rows of the register: parsed values, and rows that are skipped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.icp import made_up
from my_agent.companies import ssic
from my_agent.companies.register import BadRow, RegisterError, parse
from tests.support.processes import ROOT

FULL = (
    "UEN,Entity_Name,entity_type_description,entity_status_description,"
    "registration_incorporation_date,primary_ssic_code,primary_ssic_description,"
    "secondary_ssic_code,secondary_ssic_description,block,street_name,postal_code,no_of_officers\n"
)
SHORT = "primary_ssic_code,uen,entity_status_description,entity_name\n"
GOOD = "62011,201912345K,Live Company,ACME\n"


def read(*lines: str) -> Sequence[Any]:
    return list(parse(lines))


def test_complete_row_is_parsed() -> None:
    line = (
        '201912345k,"ACME, AND  SONS",Local Company,Live Company,2019-03-01,62011,SOFTWARE,na,na,'
        "12,HIGH STREET,na,3\n"
    )
    [row] = read(FULL, line)
    assert {name: value for name, value in row.items() if name != "updated_at"} == {
        "uen": "201912345K",
        "name": "ACME, AND SONS",
        "entity_type": "Local Company",
        "status": "Live Company",
        "is_live": True,
        "registered_on": "2019-03-01",
        "primary_ssic": "62011",
        "primary_activity": "SOFTWARE",
        "secondary_ssic": "",
        "secondary_activity": "",
        "address": "12 HIGH STREET",
        "postal_code": "",
    }


def test_columns_may_have_any_order_and_case_and_optional_ones_may_be_missing() -> None:
    [row] = read(SHORT, GOOD)
    assert (row["name"], row["primary_ssic"], row["is_live"]) == ("ACME", "62011", True)


@pytest.mark.parametrize(
    ("status", "live"),
    [("Live", True), ("LIVE COMPANY", True), ("Struck Off", False), ("na", False)],
)
def test_status_determines_is_live(status: str, live: bool) -> None:
    [row] = read(SHORT, f"62011,201912345K,{status},ACME\n")
    assert row["is_live"] is live


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("62011,na,Live,ACME\n", "uen is missing"),
        ("62011,12-45678X,Live,ACME\n", "uen '12-45678X' is invalid"),
        ("62011,201912345K,Live,na\n", "entity_name is missing"),
        ("xyz,201912345K,Live,ACME\n", "primary_ssic_code 'XYZ' is invalid"),
        ("99999999,201912345K,Live,ACME\n", "primary_ssic_code '99999999' is invalid"),
        ("62011,201912345K,Live\n", "the row has more or fewer cells than columns"),
        ("62011,201912345K,Live,ACME,more\n", "the row has more or fewer cells than columns"),
        ("62011,201912345K,Live,AC\0ME\n", "a cell contains a NUL byte"),
        ('62011,201912345K,Live,"ACME"X"\n', "',' expected after '\"'"),
    ],
)
def test_bad_row_is_reported_with_line_and_others_are_read(line: str, why: str) -> None:
    found = read(SHORT, GOOD, line, GOOD)
    assert [isinstance(row, dict) for row in found] == [True, False, True]
    assert isinstance(found[1], BadRow)
    assert found[1].line == 3
    assert found[1].why.lower() == why.lower()


def test_line_numbers_match_an_editors() -> None:
    found = read(SHORT, '62011,201912345K,Live,"TWO\n', 'LINES"\n', "\n", "62011,na,Live,X\n")
    assert found[0]["name"] == "TWO LINES"
    assert found[1] == BadRow(5, "uen is missing")


def test_invalid_date_makes_row_bad() -> None:
    line = "201912345K,ACME,na,Live,31/12/2019,62011,na,na,na,na,na,na,na\n"
    [bad] = read(FULL, line)
    assert "registration_incorporation_date '31/12/2019' is invalid" in bad.why


@pytest.mark.parametrize("lines", [[], ["\n"], ["a,b\n"], ["uen,entity_name\n"]])
def test_missing_columns_are_rejected(lines: list[str]) -> None:
    with pytest.raises(RegisterError, match="primary_ssic_code"):
        read(*lines)


def test_made_up_register_equals_script_output() -> None:
    shipped = ROOT / "my_agent/companies/reference/made_up_register.csv"
    assert shipped.read_text(encoding="utf-8") == made_up.text()


def test_made_up_register_is_valid_and_marked_as_made_up(tmp_path: Path) -> None:
    found = read(*made_up.text().splitlines(keepends=True))
    assert len(found) == made_up.COUNT
    assert all(isinstance(row, dict) for row in found)
    assert len({row["uen"] for row in found}) == len({row["name"] for row in found}) == len(found)
    assert all("(MADE UP)" in row["name"] and "MU" in row["uen"] for row in found)
    assert {row["is_live"] for row in found} == {True, False}
    assert len({ssic.lineage(row["primary_ssic"])[0].code for row in found}) >= 15
