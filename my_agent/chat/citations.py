"""Citations: check the bracketed numbers of an answer, such as `[2]`, against its passages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.state import Citation, Unsupported

# Matches `[1]`, and `[1, 3]`, which some models write. Not `list[1].name`, which is code.
_MARKS = r"(?:\[\d{1,12}(?:\s*[,;]\s*\d{1,12})*\])+"
_MARK = re.compile(rf"(?:(?<![\w\]`])|(?={_MARKS}(?:[\s.,;:!?)]|$)))(?<!`){_MARKS}")
_SPACED = re.compile(rf"[ \t]*(?:{_MARK.pattern})")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SENTENCE = re.compile(
    r"[^.!?…\n](?:[^.!?…\n]|[.!?…](?=\S))*(?:[.!?…]+[\"')”\u2019]*)?(?:[ \t]*\[[\d,; ]+\])*"
)
# A shorter sentence says too little to need a source, for example "Yes."
_WORDS = 4


@dataclass(frozen=True)
class Checked:
    """An answer after the check.

    Attributes:
        text: the answer without marks that match no passage.
        citations: the passages that it cites, in the order of the passages.
        unsupported: its sentences without a source.
    """

    text: str
    citations: list[Citation]
    unsupported: list[Unsupported]


def check(answer: str, passages: Sequence[Passage]) -> Checked:
    """Remove unknown marks from an answer, and find its citations and unsupported sentences.

    A sentence is unsupported if it cites no passage, or has a number that no cited passage has.

    Args:
        answer: text of the answer; `[1]` cites the first passage.
        passages: the passages that the model was given. Without any, no sentence needs a source.
    """
    text = _without_unknown(answer, len(passages))
    unsupported = _unsupported(text, passages) if passages else []
    return Checked(text, cited(text, passages), unsupported)


def cited(answer: str, passages: Sequence[Passage]) -> list[Citation]:
    """Return the passages that an answer cites, in the order of `passages`."""
    numbers = _numbers(_CODE.sub(" ", answer))
    return [
        Citation(
            number=number,
            title=passage.title,
            section=passage.section,
            passage=passage.number,
            text=passage.text,
            document_id=passage.document_id,
            path=passage.path,
            page=passage.page,
            start=passage.start,
            end=passage.end,
        )
        for number, passage in enumerate(passages, 1)
        if number in numbers
    ]


def _numbers(text: str) -> set[int]:
    return {int(number) for mark in _MARK.findall(text) for number in re.findall(r"\d+", mark)}


def _without_unknown(answer: str, most: int) -> str:
    """Remove the numbers that match no passage from all marks outside of code."""

    def kept(found: re.Match[str]) -> str:
        marks = []
        for mark in re.findall(r"\[[^\]]*\]", found[0]):
            numbers = re.findall(r"\d+", mark)
            known = [each for each in numbers if 1 <= int(each) <= most]
            marks.append(mark if known == numbers else f"[{', '.join(known)}]" if known else "")
        space = found[0][: found[0].index("[")]
        return f"{space}{''.join(marks)}" if any(marks) else ""

    def cleaned(prose: str) -> str:
        return _SPACED.sub(kept, prose)

    parts, last = list[str](), 0
    for code in _CODE.finditer(answer):
        parts += [cleaned(answer[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, cleaned(answer[last:])])


def _unsupported(text: str, passages: Sequence[Passage]) -> list[Unsupported]:
    prose = _CODE.sub(lambda found: " " * len(found[0]), text)
    found = []
    for sentence in _SENTENCE.finditer(prose):
        said = sentence[0].strip()
        plain = _MARK.sub("", said).strip()
        if len(re.findall(r"\w+", plain)) < _WORDS or plain.endswith(("?", ":")):
            continue
        sources = [passages[number - 1].in_context for number in _numbers(said)]
        told = {_plain(each) for source in sources for each in _NUMBER.findall(source)}
        if not sources or any(_plain(each) not in told for each in _NUMBER.findall(plain)):
            start = sentence.start() + sentence[0].index(said)
            found.append(Unsupported(start=start, end=start + len(said), text=said))
    return found


def _plain(number: str) -> str:
    """Return a number without separators: 1,200 and 1.200 and 1200 are equal."""
    return re.sub(r"[.,]", "", number)
