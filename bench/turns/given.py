"""Given: whether the values of an act are in the profile, or in the change that waits."""

from collections.abc import Sequence

from bench.turns import Act
from bench.turns.values import alike, has, has_site, ranges, same_sizes, site
from bench.turns.world import FIELDS, Profile, World

_LISTS = FIELDS[2:-1]


def is_given(before: World, after: World, act: Act) -> bool:
    """Return whether the values that an act gives have arrived, and those that it replaces are gone."""
    field, wanted = act.get("field") or act["what"], list(act["value"])
    replaced = list(act.get("instead_of") or [])
    if field == "companies":
        return any(has_site(_candidates(after), each) for each in wanted)
    got = {**after.profile, **after.change}
    if field == "website":
        return any(site(each) in got["website"] for each in wanted)
    if field == "customers":
        customers = {*after.profile["customers"], *after.change.get("customers", [])}
        there = customers - {*after.swapped}
        gone = not any(has_site(there, each) for each in replaced)
        return gone and all(has_site(there, each) for each in wanted)
    values = got.get(field, [])
    if not wanted:
        return not values
    if field == "sizes":
        is_old = act["kind"] == "Correct" and {*values} == {*before.profile[field]}
        return ranges(values) == ranges(wanted) if is_old else same_sizes(values, wanted)
    kept = [each for each in replaced if not has(wanted, each)]
    if act["kind"] == "Correct" and not replaced:
        # All of the field is replaced.
        kept = [each for each in before.profile[field] if not has(wanted, each)]
    if any(each in values for each in kept):
        return False
    return all(
        has(values, each) or (act["kind"] == "Include" and _allowed_again(before, got, each))
        for each in wanted
    )


def is_excluded(before: World, after: World, act: Act) -> bool:
    """Return whether the values that an act excludes are gone, or noted as never wanted.

    A value that was not there has to be noted: otherwise the next search may find it.
    """
    got = {**after.profile, **after.change}
    return all(_is_out(before, after, got, each) for each in act["value"])


def is_beside(before: World, after: World, acts: Sequence[Act], field: str) -> bool:
    """Return whether a field got values that no act gives, such as the rest of a message."""
    if field not in (*_LISTS, "customers") or field == "sizes":
        return False
    given = [each for act in acts for each in act.get("value") or []]
    got = {**after.profile, **after.change}
    new = [each for each in got[field] if each not in before.profile[field]]
    if field == "customers":
        return not all(any(has_site([each], one) for one in given) for each in new)
    return not all(any(alike(each, one) for one in given) for each in new)


def _is_out(before: World, after: World, got: Profile, value: str) -> bool:
    if has(got["exclusions"], value):
        return True
    was = _is_in(before.profile, value) or has_site(before.profile["customers"], value)
    if was:
        left = {*got["customers"]} - {*after.swapped}
        return not _is_in(got, value) and not has_site(left, value)
    return after.verdicts.get(f"domain:{site(value)}") == "rejected"


def _is_in(profile: Profile, value: str) -> bool:
    return any(alike(each, value) for name in _LISTS for each in profile[name])


def _allowed_again(before: World, got: Profile, value: str) -> bool:
    """Return whether a value was excluded and is not any more."""
    return has(before.profile["exclusions"], value) and not has(got["exclusions"], value)


def _candidates(world: World) -> list[str]:
    return [each.removeprefix("domain:") for each in world.tried]
