"""The turns of strangers say nothing that contradicts itself."""

from bench.turns import turns

EFFECTS = {"spend", "overwrite", "feedback", "lock"}


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
