"""Node `profile_builder`: websites, customers and ICP from the user's messages."""

from typing import Any

import pytest
from langgraph.runtime import Runtime

from my_agent.context import Context
from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.nodes.profile import profile_builder
from my_agent.icp_finder.records import store
from my_agent.icp_finder.state import State
from tests.support.icp_state import (
    COMPANY,
    HAULIER,
    ICP,
    RULE,
    config,
    confirmed,
    heard,
    site,
    state,
)


async def build(of: State) -> State:
    return await profile_builder(of, config(), Runtime(context=Context()))


def urls(*names: str) -> list[str]:
    return [f"https://{name}" for name in names]


def domains(of: State) -> list[str]:
    return [each["domain"] for each in of["customers"]]


async def test_first_website_becomes_the_companys(web: list[str]) -> None:
    found = await build(state(heard=heard(website="https://acme.com")))
    assert found["site"] is not None
    assert found["site"]["domain"] == "acme.com"
    assert found["customers"] == []
    assert web == ["acme.com"]


async def test_customers_are_added_one_by_one(web: list[str]) -> None:
    one = await build(state(site=site("acme.com"), heard=heard(customers=urls("b.com"))))
    more = await build(
        state(
            site=site("acme.com"),
            customers=one["customers"],
            heard=heard(customers=urls("c.com", "d.com")),
        )
    )
    assert domains(more) == ["b.com", "c.com", "d.com"]
    assert web == ["b.com", "c.com", "d.com"]


async def test_company_and_customers_come_in_one_message(web: list[str]) -> None:
    five = urls("b.com", "c.com", "d.com", "e.com", "f.com")
    found = await build(state(heard=heard(website="https://acme.com", customers=five)))
    assert found["site"] is not None
    assert found["site"]["domain"] == "acme.com"
    assert len(found["customers"]) == 5


async def test_rejected_websites_are_noted_and_others_kept(
    web: list[str], logged: list[Any]
) -> None:
    named = urls("b.com", "acme.com", "10.0.0.1", "down.com")
    found = await build(state(site=site("acme.com"), heard=heard(customers=named)))
    assert domains(found) == ["b.com", "down.com"]
    assert found["customers"][1]["about"] == ""
    notes = "\n".join(found["notes"])
    assert "acme.com is your own website" in notes
    assert "10.0.0.1 is at a private address" in notes
    assert "down.com could not be read" in notes
    assert {line["action"] for line in logged} == {"site_refused", "site_unreadable"}


async def test_known_customer_is_not_read_again(web: list[str]) -> None:
    known = [site("b.com")]
    found = await build(
        state(site=site("acme.com"), customers=known, heard=heard(customers=urls("b.com")))
    )
    assert (found["notes"], web) == (["I have b.com already."], [])


async def test_eleventh_customer_is_left_out(web: list[str]) -> None:
    ten = [site(f"d{n}.com") for n in range(10)]
    of = state(site=site("acme.com"), customers=ten, heard=heard(customers=urls("y.com", "z.com")))
    found = await build(of)
    assert found["customers"] == ten
    assert "y.com and z.com" in found["notes"][0]
    assert web == []


async def test_customer_is_taken_out_before_another_one_comes(web: list[str]) -> None:
    ten = [site(f"d{n}.com") for n in range(10)]
    swap = heard(without=["d3.com"], customers=urls("y.com"))
    found = await build(state(site=site("acme.com"), customers=ten, heard=swap))
    assert domains(found) == [*(f"d{n}.com" for n in range(10) if n != 3), "y.com"]


async def test_customer_that_is_there_stays_if_it_is_named_again(web: list[str]) -> None:
    swap = heard(without=["c1.com"], customers=urls("c2.com"))
    found = await build(state(heard=swap, **COMPANY))
    assert domains(found) == ["c0.com", "c2.com", "c3.com", "c4.com"]


async def test_icp_is_proposed_from_websites(web: list[str]) -> None:
    five = urls("b.com", "c.com", "d.com", "e.com", "f.com")
    found = await build(state(site=site("acme.com"), heard=heard(customers=five)))
    assert found["icp"] is not None
    assert "Land transport" in found["icp"]["industries"][0]


async def test_users_icp_fields_override_the_proposal(web: list[str]) -> None:
    partly: Icp = {"industries": [], "sizes": [], "regions": ["Asia"], "keywords": []}
    four: dict[str, Any] = {"site": COMPANY["site"], "customers": COMPANY["customers"][:4]}
    found = await build(state(heard=heard(customers=urls("f.com")), icp=partly, **four))
    assert found["icp"] is not None
    assert found["icp"]["regions"] == ["Asia"]
    assert found["icp"]["industries"]
    steel = heard(icp={"industries": ["steel"]})
    told = await build(state(heard=steel, icp=ICP, **COMPANY))
    assert told["icp"] is not None
    assert told["icp"]["industries"] == ["steel"]


@pytest.mark.parametrize("enough", [{"enough": True}, {"heard": heard(enough=True)}])
async def test_icp_is_proposed_from_fewer_customers_if_there_are_no_more(
    web: list[str], enough: Any
) -> None:
    two = [site("b.com", HAULIER), site("c.com", HAULIER)]
    found = await build(state(site=site("acme.com"), customers=two, **enough))
    assert found["icp"] is not None
    assert "Land transport" in found["icp"]["industries"][0]


async def test_nothing_is_proposed_while_customers_are_missing(web: list[str]) -> None:
    two = [site("b.com", HAULIER), site("c.com", HAULIER)]
    assert (await build(state(site=site("acme.com"), customers=two)))["icp"] is None


async def test_change_of_a_shown_profile_is_told_and_can_be_undone(web: list[str]) -> None:
    said = heard(icp={"regions": ["Malaysia"], "exclusions": ["hotels"]})
    found = await build(confirmed(heard=said))
    [note] = found["notes"]
    assert note.splitlines()[2:] == ["- regions: any → Malaysia", "- never: nothing → hotels"]
    assert found["undo"][-1]["icp"] == ICP


async def test_unconfirmed_data_is_saved_at_once(web: list[str]) -> None:
    await build(state(heard=heard(website="https://acme.com", customers=urls("b.com"))))
    snapshot = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert not snapshot.profile.confirmed
    assert len(snapshot.profile.company["customers"]) == 1


async def test_impossible_change_leaves_company_unchanged(web: list[str]) -> None:
    of = confirmed(heard=heard(website="http://10.0.0.1"), consent=True)
    found = await build(of)
    assert found["site"] == COMPANY["site"]
    assert not found["consent"]
    assert not found["decisions"]["rerun_icp"]
    assert "private address" in found["notes"][0]


async def test_confirmed_website_changes_after_consent(web: list[str]) -> None:
    found = await build(confirmed(heard=heard(website="https://acme.org"), consent=True))
    assert found["site"] is not None
    assert found["site"]["domain"] == "acme.org"
    assert found["customers"] == COMPANY["customers"]
    # The company is saved only with the consent to search.
    assert (await store.load_snapshot("acme", domain="acme.org", rule_name=RULE)).profile is None
