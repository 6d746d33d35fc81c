"""Figures: count what became of turns, and bound it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from bench.report import Line
from bench.turns import Act, turns
from bench.turns.playing import Mode, Result, play

MODES: tuple[Mode, ...] = ("alone", "model", "hostile")
# Required share of the certain turns that are right without a model.
CERTAIN = 0.9


def measure() -> Sequence[Line]:
    """Play all turns in all modes, print the figures, and return those with a bound."""
    every = turns()
    return [line for mode in MODES for line in report(mode, play(every, mode))]


def report(mode: Mode, results: Sequence[Result], *, show: bool = False) -> Sequence[Line]:
    """Print the figures of a mode, and return the lines of the table.

    Args:
        mode: how the turns were played.
        results: the turns.
        show: whether each failure is printed.
    """
    if show:
        for each in results:
            for problem in each.problems:
                print("  " + _line(each, problem))
    else:
        for each in results:
            if each.unreached and each.strategy in ("", results[0].strategy):
                print(f"  {each.turn['id']}: unreachable: {each.unreached}")
    harmed = {each.turn["id"] for each in results if each.unasked}
    effects = Counter(each.split(":")[0] for one in results for each in one.unasked)
    told = ", ".join(f"{name} {count}" for name, count in effects.most_common())
    print(f"{mode}: {len(harmed)} turns with unasked effects" + (f" ({told})" if told else ""))
    crashed = {each.turn["id"] for each in results if each.crashed}
    print(f"{mode}: {len(crashed)} turns that ended with an error")
    if mode == "hostile":
        _print_strategies(results)
        # A model may translate or complete a value, so what fills an empty field is not bounded.
        invented = {each.turn["id"] for each in results if each.invented}
        print(f"{mode}: {len(invented)} turns in which an invented value was stored")
        return [
            Line("turns with unasked effects, with a hostile model", len(harmed), "", limit=0),
            Line("turns that end with an error, with a hostile model", len(crashed), "", limit=0),
        ]
    _print_right(mode, results)
    right = _share(results)
    if mode == "model":
        return [
            Line("turns right, with a model", right, "", better="higher"),
            Line("turns with unasked effects, with a model", len(harmed), "", limit=0),
            Line("turns that end with an error, with a model", len(crashed), "", limit=0),
        ]
    certain = [each for each in results if each.turn["certain"]]
    others = [each for each in results if not each.turn["certain"]]
    wrong = sum(bool(each.unasked) for each in others)
    print(f"{mode}: certain turns right: {_of(certain)}")
    chosen = [each for each in certain if _chooses(each)]
    rest = [each for each in certain if not _chooses(each)]
    print(
        f"  numbers of options that the finder does not offer: {_of(chosen)}; the rest: {_of(rest)}"
    )
    print(f"{mode}: other turns with unasked effects: {wrong} of {len(others)}")
    return [
        Line("turns right, without a model", right, "", better="higher"),
        Line(
            "certain turns right, without a model",
            _share(certain),
            "",
            limit=CERTAIN,
            better="higher",
        ),
        Line("turns with unasked effects, without a model", len(harmed), "", limit=0),
        Line("turns that end with an error, without a model", len(crashed), "", limit=0),
    ]


def _print_right(mode: Mode, results: Sequence[Result]) -> None:
    print(f"{mode}: turns right: {_of(results)}")
    outcomes = Counter(outcome for each in results for _, outcome in each.acts)
    counts = ", ".join(f"{outcomes[name]} {name}" for name in ("applied", "offered", "missed"))
    print(f"{mode}: acts: {counts}")
    unreached = sum(bool(each.unreached) for each in results)
    print(f"{mode}: unreachable: {unreached}")
    by_language = _grouped(results, lambda each: str(each.turn["language"]))
    by_question = _grouped(results, _question)
    for name, groups in (("language", by_language), ("question", by_question)):
        print(f"{mode}: by {name}: " + "; ".join(f"{key} {_of(of)}" for key, of in groups))
    acts = [pair for each in results for pair in each.acts]
    for kind, count in Counter(_kind(act) for act, _ in acts).most_common():
        done = Counter(outcome for act, outcome in acts if _kind(act) == kind)
        print(
            f"  {kind}: {done['applied']} applied, {done['offered']} offered,"
            f" {done['missed']} missed, of {count}"
        )


def _print_strategies(results: Sequence[Result]) -> None:
    for name, of in _grouped(results, lambda each: each.strategy):
        wrong = sum(bool(each.unasked) for each in of)
        print(f"  {name}: {wrong} of {len(of)} plays with unasked effects")


def _grouped(
    results: Sequence[Result], name: Callable[[Result], str]
) -> Iterator[tuple[str, list[Result]]]:
    for each in dict.fromkeys(map(name, results)):
        yield each, [one for one in results if name(one) == each]


def _question(result: Result) -> str:
    asked = result.turn["situation"]["question"]
    return str(asked["kind"]) if asked else "none"


def _chooses(result: Result) -> bool:
    """Return whether a turn answers with options a question that the finder asks without."""
    asked = result.turn["situation"]["question"]
    return bool(asked and asked["options"] and asked["kind"] in ("industries", "sizes"))


def _kind(act: Act) -> str:
    return f"{act['kind']} {act['name']}" if act["kind"] == "Command" else str(act["kind"])


def _share(results: Sequence[Result]) -> float:
    return sum(each.is_right for each in results) / len(results) if results else 0.0


def _of(results: Sequence[Result]) -> str:
    right = sum(each.is_right for each in results)
    return f"{right} of {len(results)} ({_share(results):.1%})"


def _line(result: Result, problem: str) -> str:
    said = " ".join(result.said.split())[:150]
    mark = "*" if result.turn["certain"] else ""
    how = f" [{result.strategy}]" if result.strategy else ""
    return f"{result.turn['id']}{mark}{how}: {result.turn['message']!r}: {problem} | {said}"
