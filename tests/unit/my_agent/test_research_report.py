"""The report's Markdown, read by a Markdown parser: what pages say stays words."""

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from my_agent.research.model import Claim, Disagreement, LedgerEntry, Report, Section, SourceRow
from my_agent.research.report import markdown

PLAIN = "words"
HOSTILE = (
    *("a | b", "| --- |", "\\| \\`", "a\\", "`code` ```", "~~~\nx", "line\nbreak", "    code"),
    *("<script>x</script>", "<!-- x -->", "<http://a.example>", "&amp; &#124; &lt;"),
    *("[x](javascript:alert(1))", "![i](http://e.example/x.png)", "[1]: http://evil.example"),
    *(
        "# h",
        "1. list",
        "- item",
        "> q",
        "***",
        "a\n---",
        "[^1]: foot",
        "\u2028x\u2029y",
        "**b** _i_",
    ),
)
URL = "https://e.example/a|b?x=[1](2)&copy;=<`>#é%20"
# The parser writes brackets in this form.
TARGET = "https://e.example/a%7Cb?x=%5B1%5D(2)&copy;=%3C%60%3E#%C3%A9%20"
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def report(words: str, url: str = URL) -> Report:
    claim = Claim(words, ("1",), 1, "supported")
    return Report(
        *("p1", words, words, "", "", "completed"),
        sections=(Section("Key findings", (claim,)),),
        disagreements=(Disagreement(words, ((words, "2020-01-01", "1"),)),),
        unsupported=(Claim(words, reason=words),),
        ledger=(LedgerEntry("1", url, "", 0, 1, words),),
        sources=(SourceRow(url, words, None, "o", 0.5, True),),
    )


def parsed(made: Report) -> list[Token]:
    """Return all tokens, those inside of lines too."""
    found = PARSER.parse(markdown.render(made))
    return [each for token in found for each in (token, *(token.children or []))]


@pytest.mark.parametrize("words", HOSTILE)
def test_words_of_pages_change_nothing_but_words(words: str) -> None:
    made = report(words)
    found = parsed(made)
    assert [each.type for each in found] == [each.type for each in parsed(report(PLAIN))]
    shown = " ".join(words.split())
    texts = [each.content for each in found if each.type == "text"]
    # Title, table, subject: the words themselves.
    assert texts.count(shown) == 3
    fences = [each for each in found if each.type == "fence"]
    assert [each.info for each in fences] == ["mermaid", "mermaid"]


def test_sources_are_links_to_exactly_their_address() -> None:
    found = parsed(report(PLAIN))
    links = [each.attrs["href"] for each in found if each.type == "link_open"]
    assert links == [TARGET, TARGET]
    assert [each.content for each in found].count(URL) == 2
    assert sum(each.type == "table_open" for each in found) == 1


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "http:", "//e.example", "http://["]
)
def test_other_addresses_are_no_links(url: str) -> None:
    found = parsed(report(PLAIN, url))
    assert "link_open" not in [each.type for each in found]
    assert url in [each.content for each in found]
