"""Templates: group the messages of logs by their constant words, with drain3."""

import re
from collections.abc import Iterable
from functools import cache

from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig

from my_agent.diagnosis.reading.record import Record

# Beyond it, a message is a document and its end tells nothing about its kind.
LONGEST = 300
# Different messages that are mined. All others of a service are one group.
DISTINCT, OTHERS = 3000, -1
_DIGITS = re.compile(r"\d+")
_MASKS = (
    (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "ID"),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b", "IP"),
    (r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", "HEX"),
    (r"(?<![\w.])-?\d+(?:\.\d+)?(?=\D|$)", "NUM"),
)


def mine(records: Iterable[Record]) -> dict[tuple[str, int], list[Record]]:
    """Group records by service and template, in the order of their first record."""
    miner = TemplateMiner(config=_config())
    groups: dict[tuple[str, int], list[Record]] = {}
    known: dict[str, int] = {}
    for record in records:
        text = f"{record.level} {record.text[:LONGEST]}"
        # Most messages of a log differ in numbers only, and mining is what takes time.
        key = _DIGITS.sub("0", text)
        if key not in known:
            full = len(known) >= DISTINCT
            known[key] = OTHERS if full else miner.add_log_message(text)["cluster_id"]
        groups.setdefault((record.service, known[key]), []).append(record)
    return groups


@cache
def _config() -> TemplateMinerConfig:
    config = TemplateMinerConfig()
    config.drain_sim_th = 0.5
    config.drain_max_clusters = 500
    config.profiling_enabled = False
    config.masking_instructions = [MaskingInstruction(*each) for each in _MASKS]
    return config
