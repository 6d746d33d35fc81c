"""Turns: messages to the ICP finder, each with its situation and what a good reader finds in it.

They were written from the product's page alone, without sight of the code. A line of `turns.jsonl` has:

- `situation`: the open `question` (`kind`, `text`, `options`) or null, the stored `fields`, the candidates that are
  `listed` with their numbers from 1, and what is `running`;
- `message`: what the person writes;
- `acts`, in the order of the message: `kind` (`Answer`, `Correct`, `Exclude`, `Include`, `Command`, `Consent`, `Ask`,
  `Dispute`, `SmallTalk`, `Unclear`), the `quote` that says it, and the values of that kind;
- `targets`: the numbers that its commands concern once ranges and exceptions are computed;
- `may`: effects that the person asks for, of `spend` (a search or an enrichment), `overwrite` (a stored field),
  `feedback` and `lock` (a new session); to fill an empty field is none of them;
- `never`: effects that must not happen, also `act_on:NUMBER`;
- `certain`: whether a reader without a language model must find it;
- `note`: what makes it tricky.

`python -m bench.turns` plays them on the real graph:

- `situations` reaches a situation, `talk` sends messages, `offline` and `endpoint` stand in for network and model;
- `world` is what can be seen, `effects` what a message has changed, `judging` what became of each act;
- `case`, `commands`, `given`, `answers` and `values` are parts of judging;
- `playing` puts these together, `hostile` has the readings of a model that means harm, `figures` counts.
"""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("turns.jsonl")

Turn = dict[str, Any]
Act = dict[str, Any]


def turns(path: Path = FILE) -> list[Turn]:
    """Return all turns of a file, in its order."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def named(turn: Turn, targets: object) -> list[int]:
    """Return the numbers of listed candidates that are named by number or name, or as `all`."""
    listed = turn["situation"]["listed"]
    if targets == "all":
        return [each["number"] for each in listed]
    given = targets if isinstance(targets, list) else []
    return [each["number"] for each in listed if {each["number"], each["name"]} & set(given)]


def aimed_at(turn: Turn, act: Act) -> list[int] | None:
    """Return the numbers that a command concerns, without its exceptions; None if it names none."""
    if act.get("targets") is None:
        return None
    spared = named(turn, act.get("except"))
    return [number for number in named(turn, act["targets"]) if number not in spared]
