"""Citations: check the bracketed numbers of an answer, such as `[2]`, against its passages."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.state import Citation, Unsupported

# Matches `[1]`, and `[1, 3]`, which some models write. Not `list[1].name`, which is code.
_MARKS = re.compile(r"(?:\[\d{1,12}(?:\s*+[,;]\s*+\d{1,12})*+\])++")
_INSIDE = re.compile(r"[\w\]]")
_BEHIND = re.compile(r"[\s.,;:!?)]")
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
    return {int(each) for mark in _marks(text) for each in re.findall(r"\d+", mark[0])}


def _marks(text: str) -> Iterator[re.Match[str]]:
    """Yield the marks of a text, adjacent ones as one.

    Behind a letter or a bracket, a mark is the index of a list, unless a clause ends there.
    """
    for found in _MARKS.finditer(text):
        start, end = found.span()
        before, behind = text[max(start - 1, 0) : start], text[end : end + 1]
        ends = not behind or _BEHIND.match(behind)
        if before != "`" and (ends or not _INSIDE.match(before)):
            yield found


def _without_unknown(answer: str, most: int) -> str:
    """Remove the numbers that match no passage from all marks outside of code."""

    def kept(run: str) -> str:
        marks = []
        for mark in re.findall(r"\[[^\[\]]*+\]", run):
            numbers = re.findall(r"\d+", mark)
            known = [each for each in numbers if 1 <= int(each) <= most]
            marks.append(mark if known == numbers else f"[{', '.join(known)}]" if known else "")
        return "".join(marks)

    def cleaned(prose: str) -> str:
        return _replaced(prose, kept)

    parts, last = list[str](), 0
    for code in _CODE.finditer(answer):
        parts += [cleaned(answer[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, cleaned(answer[last:])])


def _replaced(prose: str, kept: Callable[[str], str]) -> str:
    """Replace the marks of a text. The blanks before a mark of which nothing is kept go, too."""
    parts, last = list[str](), 0
    for found in _marks(prose):
        before, mark = prose[last : found.start()], kept(found[0])
        parts += [before if mark else before.rstrip(" \t"), mark]
        last = found.end()
    return "".join([*parts, prose[last:]])


def _unsupported(text: str, passages: Sequence[Passage]) -> list[Unsupported]:
    prose = _CODE.sub(lambda found: " " * len(found[0]), text)
    found = []
    for sentence in _SENTENCE.finditer(prose):
        said = sentence[0].strip()
        plain = _replaced(said, lambda _: "").strip()
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
