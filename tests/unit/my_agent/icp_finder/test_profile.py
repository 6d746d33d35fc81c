"""Node `profile_builder`: websites, customers and ICP from the user's messages."""

from typing import Any

from langgraph.runtime import Runtime

from my_agent.icp_finder.context import Context
from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.nodes.profile import profile_builder
from my_agent.icp_finder.records import store
from my_agent.icp_finder.state import State
from tests.support.icp_state import (
    COMPANY,
    ICP,
    RULE,
    config,
    confirmed,
    site,
    state,
)


async def build(of: State) -> State:
    return await profile_builder(of, config(), Runtime(context=Context()))


async def test_first_website_becomes_the_companys(web: list[str]) -> None:
    found = await build(state("acme.com"))
    assert found["site"] is not None
    assert found["site"]["domain"] == "acme.com"
    assert found["customers"] == []
    assert web == ["acme.com"]


async def test_customers_are_added_one_by_one_or_all_at_once(web: list[str]) -> None:
    one = await build(state("b.com", site=site("acme.com")))
    more = await build(state("c.com, d.com", site=site("acme.com"), customers=one["customers"]))
    assert [each["domain"] for each in more["customers"]] == ["b.com", "c.com", "d.com"]
    all_ = await build(state("We are acme.com and sell to b.com c.com d.com e.com f.com"))
    assert all_["site"] is not None
    assert all_["site"]["domain"] == "acme.com"
    assert len(all_["customers"]) == 5


async def test_rejected_websites_are_noted_and_others_kept(
    web: list[str], logged: list[Any]
) -> None:
    found = await build(
        state("b.com acme.com b.com http://10.0.0.1 down.com", site=site("acme.com"))
    )
    assert [each["domain"] for each in found["customers"]] == ["b.com", "down.com"]
    assert found["customers"][1]["about"] == ""
    notes = "\n".join(found["notes"])
    assert "acme.com is your own website" in notes
    assert "10.0.0.1 is at a private address" in notes
    assert "down.com could not be read" in notes
    assert {line["action"] for line in logged} == {"site_refused", "site_unreadable"}


async def test_duplicate_and_sixth_customers_are_rejected(web: list[str]) -> None:
    known = [site("b.com")]
    found = await build(state("b.com", site=site("acme.com"), customers=known))
    assert found["notes"] == ["I have b.com already."]
    full = await build(state("y.com z.com", confirmed=False, **COMPANY))
    assert full["customers"] == COMPANY["customers"]
    assert "y.com and z.com" in full["notes"][0]
    assert web == []


async def test_customer_is_swapped_unless_replacement_is_rejected(
    web: list[str],
) -> None:
    found = await build(state("replace c1.com with d.com", **COMPANY))
    assert found["customers"][1]["domain"] == "d.com"
    found = await build(state("replace c1.com with http://10.0.0.1", **COMPANY))
    assert found["customers"] == COMPANY["customers"]
    found = await build(state("replace x.com with d.com", **COMPANY))
    assert found["notes"] == ["x.com is not one of your customers."]
    found = await build(state("replace c1.com with c2.com", **COMPANY))
    assert found["customers"] == COMPANY["customers"]


async def test_icp_is_proposed_from_websites(web: list[str]) -> None:
    found = await build(state("b.com c.com d.com e.com f.com", site=site("acme.com")))
    assert found["icp"] is not None
    assert "Land transport" in found["icp"]["industries"][0]


async def test_users_icp_fields_override_the_proposal(web: list[str]) -> None:
    partly: Icp = {"industries": [], "sizes": [], "regions": ["Asia"], "keywords": []}
    found = await build(
        state("f.com", icp=partly, **{**COMPANY, "customers": COMPANY["customers"][:4]})
    )
    assert found["icp"] is not None
    assert found["icp"]["regions"] == ["Asia"]
    assert found["icp"]["industries"]
    told = await build(state("industries: steel", icp=ICP, **COMPANY))
    assert told["icp"] is not None
    assert told["icp"]["industries"] == ["steel"]


async def test_requested_industries_need_no_label(web: list[str]) -> None:
    found = await build(state("steel and food", asked="industries", **COMPANY))
    assert found["icp"] is not None
    assert found["icp"]["industries"] == ["steel", "food"]


async def test_requested_correction_needs_no_label(web: list[str]) -> None:
    found = await build(state("food manufacturing", asked="icp", icp=ICP, **COMPANY))
    assert found["icp"] is not None
    assert found["icp"]["industries"] == ["food manufacturing"]
    vague = await build(state("hm, well", asked="icp", icp=ICP, **COMPANY))
    assert (vague["icp"], vague["unclear"]) == (ICP, True)


async def test_unconfirmed_data_is_saved_at_once(web: list[str]) -> None:
    await build(state("acme.com b.com"))
    snapshot = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert not snapshot.profile.confirmed
    assert len(snapshot.profile.company["customers"]) == 1


async def test_impossible_change_leaves_company_unchanged(web: list[str]) -> None:
    of = confirmed("our website is now http://10.0.0.1", consent=True)
    found = await build(of)
    assert found["site"] == COMPANY["site"]
    assert not found["consent"]
    assert not found["decisions"]["rerun_icp"]
    assert "private address" in found["notes"][0]


async def test_confirmed_website_changes_after_consent(web: list[str]) -> None:
    found = await build(confirmed("our website is now acme.org", consent=True))
    assert found["site"] is not None
    assert found["site"]["domain"] == "acme.org"
    assert found["customers"] == COMPANY["customers"]
    # The company is saved only with the consent to search.
    assert (await store.load_snapshot("acme", domain="acme.org", rule_name=RULE)).profile is None
