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
"""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("turns.jsonl")

Turn = dict[str, Any]


def turns() -> list[Turn]:
    """Return all turns, in the order of the file."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
