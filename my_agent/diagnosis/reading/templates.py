"""Templates: the constant words of messages, found with drain3."""

import re

from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig

LONGEST = 300
"""Characters of a message that tell its kind; beyond, it is a document."""
DISTINCT, MINERS, CLUSTERS = 4_000, 40, 300
"""Messages that are mined, components that are mined apart, and templates of one of them.

Mining a message takes time with the templates that it is compared with. Messages beyond are told
apart by their first words.
"""
_MASKS = (
    (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "ID"),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b", "IP"),
    (r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]{0,64}\d)[0-9a-f]{8,64}\b", "HEX"),
    (r"(?<![\w.])-?\d+(?:\.\d+)?(?=\D|$)", "NUM"),
)
_HEX = re.compile(r"(?<![\w-])(?=[0-9a-f-]{0,40}\d)[0-9a-f]{4,40}(?:-[0-9a-f]{2,12}){0,5}(?![\w-])")
_NUMBER = re.compile(r"\d[\w.%]*+")
_FIRST = 3
_NEARLY_ALL = 90.0
_CODE = 3


class Templates:
    """The templates of one source, in bounded memory."""

    def __init__(self) -> None:
        self._miners: dict[str, TemplateMiner] = {}
        self._mined = 0

    def find(self, component: str, text: str) -> tuple[str, str]:
        """Return what the template of a message is known by, and the template.

        Args:
            component: What wrote it.
            text: A message that was not seen before, but for its numbers.
        """
        text = text[:LONGEST]
        if self._mined >= DISTINCT or not text.strip():
            first = beginning(text)
            return f"first {first}", f"{first} <*>"
        self._mined += 1
        if component not in self._miners and len(self._miners) >= MINERS:
            component = ""
        miner = self._miners.get(component)
        if miner is None:
            miner = self._miners[component] = TemplateMiner(config=_config())
        found = miner.add_log_message(text)
        return str(found["cluster_id"]), str(found["template_mined"])


def beginning(text: str) -> str:
    """Return the first words of a message, without their numbers."""
    return _NUMBER.sub("#", " ".join(text[:LONGEST].split()[:_FIRST]))


def shape(text: str) -> str:
    """Return a message with its numbers masked: messages of one shape have one template.

    Numbers that tell good from bad stay apart: none of something, nearly all of it, and the first
    digit of a status.
    """
    return _NUMBER.sub(_masked, _HEX.sub("#", text[:LONGEST]))


def _masked(found: re.Match[str]) -> str:
    said = found[0]
    if said == "0":
        return said
    if len(said) == _CODE and said.isdigit():
        return f"{said[0]}##"
    if said[-1] == "%":
        try:
            return "9#%" if float(said[:-1]) >= _NEARLY_ALL else "#%" if said != "0%" else said
        except ValueError:
            return "#"
    return "#"


def _config() -> TemplateMinerConfig:
    config = TemplateMinerConfig()
    config.drain_sim_th = 0.6
    config.drain_max_clusters = CLUSTERS
    config.drain_max_children = 60
    config.profiling_enabled = False
    config.masking_instructions = [MaskingInstruction(*each) for each in _MASKS]
    return config
