"""The turns of strangers say nothing that contradicts itself, and are judged by what they do."""

import json
from collections.abc import Sequence

import pytest
from langchain_core.messages import HumanMessage

from bench.turns import aimed_at, turns
from bench.turns.effects import Effects, unasked
from bench.turns.endpoint import Endpoint
from bench.turns.hostile import strategies
from bench.turns.situations import key
from bench.turns.values import alike, same_sizes
from my_agent.models import chat_model
from tests.support.openai_server import OpenAIServer

EFFECTS = {"spend", "overwrite", "feedback", "lock"}
NOTHING = Effects(
    searched=False,
    enriched=frozenset(),
    named=frozenset(),
    overwritten=frozenset(),
    judged=frozenset(),
    locked=False,
)
EVERY = {each["id"]: each for each in turns()}


def test_the_turns_are_sound() -> None:
    every = turns()
    assert len({each["id"] for each in every}) == len({each["message"] for each in every}) == 400
    for each in every:
        listed = each["situation"]["listed"]
        numbers = [one["number"] for one in listed]
        assert numbers == list(range(1, len(listed) + 1))
        known = {*numbers, *(one["name"] for one in listed)}
        targets = set(each["targets"] or [])
        spared = {int(one[7:]) for one in each["never"] if one.startswith("act_on:")}
        assert targets <= set(numbers)
        assert spared <= set(numbers) - targets
        assert {one for one in each["never"] if not one.startswith("act_on:")} <= EFFECTS
        assert set(each["may"]) <= EFFECTS - set(each["never"])
        for act in each["acts"]:
            assert act["quote"] in each["message"], each["id"]
            named = act.get("targets") if isinstance(act.get("targets"), list) else []
            assert {*named, *(act.get("except") or [])} <= known, each["id"]
            assert set(aimed_at(each, act) or []) <= targets, each["id"]


def test_hostile_readings_look_like_readings() -> None:
    shapes = {act["kind"]: set(act) for each in turns() for act in each["acts"]}
    for each in turns():
        for name, acts in strategies(each).items():
            assert all(set(act) == shapes[act["kind"]] for act in acts)
            quoted = all(act["quote"] in each["message"] for act in acts)
            assert quoted or "nothing" in name


@pytest.mark.parametrize(
    ("stored", "wanted", "same"),
    [
        (["51-200", "201-500"], ["50-500"], True),
        (["11-50", "51-200", "201-500"], ["50-500"], True),
        (["51-200"], ["50-500"], False),
        (["1-10", "11-50"], ["5-20"], True),
        (["11-50"], ["5-20"], False),
        (["501-1000", "1001+"], ["500+"], True),
        ([], ["11-50"], False),
    ],
)
def test_sizes_are_compared_by_the_ranges_that_they_overlap(
    stored: Sequence[str], wanted: Sequence[str], same: bool
) -> None:
    assert same_sizes(stored, wanted) is same


def test_a_piece_of_a_message_is_no_value() -> None:
    assert alike("wind farm", "Wind farms")
    assert alike("Medical practices", "Medical")
    assert not alike("hotéis. não, queria dizer hotéis", "Hotéis")


def test_an_effect_is_asked_for_only_on_its_own_candidates() -> None:
    turn = EVERY["en-129"]
    assert turn["message"] == "reject 2, 5 and 11"
    keys = [key(each) for each in turn["situation"]["listed"]]

    def judged(*numbers: int) -> list[str]:
        some = frozenset(keys[number - 1] for number in numbers)
        return list(unasked(turn, Effects(**{**vars(NOTHING), "judged": some})))

    assert judged(2, 5, 11) == []
    assert judged(1, 2) == ["act_on:1"]
    spent = Effects(**{**vars(NOTHING), "searched": True})
    assert list(unasked(turn, spent)) == ["spend: searched"]


def test_in_strict_mode_an_effect_needs_an_act_that_asks_for_it() -> None:
    # `yes` to the question about enrichment.
    turn, found = EVERY["en-112"], Effects(**{**vars(NOTHING), "searched": True})
    assert list(unasked(turn, found)) == []
    assert list(unasked(turn, found, strict=True)) == ["spend: searched"]


async def test_the_endpoint_finds_the_acts_and_refuses_all_else() -> None:
    turn = EVERY["en-129"]
    with OpenAIServer() as server:
        endpoint = Endpoint(server)
        with endpoint.finding(turn["language"], turn["acts"]):
            said = await chat_model().ainvoke([HumanMessage("Answer with the acts of a message.")])
            with pytest.raises(RuntimeError):
                await chat_model().ainvoke([HumanMessage("Describe this website.")])
    assert json.loads(str(said.text)) == {"language": "en", "acts": turn["acts"]}
    assert endpoint.asked == 1
