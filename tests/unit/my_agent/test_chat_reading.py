"""Parsing files: Markdown, text, HTML and PDF, and files that are rejected."""

import os
from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfWriter

from my_agent.chat.documents import reading
from my_agent.chat.documents.reading import Document, Unreadable, load, parse
from tests.support.pdf import pdf

LARGEST = 1_000_000


def read(name: str, content: bytes) -> Document:
    return parse(Path(name), content)


def said(document: Document) -> list[tuple[str, str]]:
    return [(section.heading, section.text) for section in document.sections]


def test_markdown_headings_in_code_are_ignored() -> None:
    text = b"intro\n# Light #\n\n## Tower\nstone\n```sh\n# no heading\n```\n#hash\n##  Lamp\nbright"
    page = read("a.md", text)
    assert page.title == "Light"
    assert said(page) == [
        ("", "intro"),
        ("Tower", "stone\n```sh\n# no heading\n```\n#hash"),
        ("Lamp", "bright"),
    ]


def test_markdown_code_ends_at_its_own_fence() -> None:
    page = read("a.md", b"````md\n```sh\n# no heading\n```\n````\n```one line```\n## Tower\nstone")
    assert said(page)[-1] == ("Tower", "stone")
    assert "# no heading" in said(page)[0][1]


def test_markdown_closing_marks_of_a_heading_are_removed() -> None:
    page = read("a.md", b"a\n## C#\nb\n  ## D ##  \nc\n## E #f\nd\n##\t\t#\ne")
    assert [heading for heading, _ in said(page)] == ["", "C#", "D", "E #f", ""]


def test_markdown_underlined_headings_are_parsed() -> None:
    page = read("a.md", b"Light\n=====\n\nTower\n---\nstone\n\n---\n| a | b |\n|---|---|\n")
    assert page.title == "Light"
    assert said(page) == [("Tower", "stone\n\n---\n| a | b |\n|---|---|")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 'From the front'\ntags: x\n---\n# Other\ntext", "From the front"),
        ("---\ntitle: 5' tall \n---\ntext", "5' tall"),
        ("---\ntitle:\n---\n# Light\ntext", "Light"),
        ("---\nno title\n---\n# Light\ntext", "Light"),
        ("## Only a section\ntext", "name"),
        ("text", "name"),
        ("--- \nno end", "name"),
    ],
)
def test_title_of_markdown(text: str, title: str) -> None:
    page = read("name.md", text.encode())
    assert page.title == title
    assert "title:" not in str(page.sections)


@pytest.mark.parametrize(
    "content",
    ["níveis".encode(), b"\xef\xbb\xbfn\xc3\xadveis", "níveis".encode("utf-16"), b"n\xedveis"],
)
def test_text_encodings_are_detected(content: bytes) -> None:
    assert said(read("a.txt", content)) == [("", "níveis")]


def test_text_is_normalized() -> None:
    assert said(read("a.txt", "ni\u0301veis\r\nb\rc".encode())) == [("", "níveis\nb\nc")]


def test_html_gives_main_text_with_headings() -> None:
    page = read(
        "a.html",
        b"""<html><head><title>The tax</title><script>var x</script></head><body>
        <nav><a href="/">All pages</a></nav><main><h1>The tax</h1><p>Who gathers, pays.</p>
        <h2>How much</h2><p>Four crowns.</p><ul><li>or five</li></ul></main></body></html>""",
    )
    assert page.title == "The tax"
    assert said(page)[0] == ("", "Who gathers, pays.")
    assert said(page)[1][0] == "How much"
    assert "Four crowns." in said(page)[1][1] and "or five" in said(page)[1][1]
    assert "All pages" not in str(page) and "var x" not in str(page)


def test_html_fragment_is_parsed() -> None:
    assert said(read("a.htm", "<p>Só um parágrafo.</p>".encode())) == [("", "Só um parágrafo.")]


def test_pdf_pages_become_sections() -> None:
    page = read("name.pdf", pdf("Page one.", "Page two."))
    assert page.title == "name"
    assert said(page) == [("p. 1", "Page one."), ("p. 2", "Page two.")]


def encrypted(user: str) -> bytes:
    writer = PdfWriter(clone_from=BytesIO(pdf("Secret words.")))
    writer.encrypt(user_password=user, owner_password="owner", algorithm="AES-256")
    written = BytesIO()
    writer.write(written)
    return written.getvalue()


def test_pdf_with_empty_password_is_read() -> None:
    assert said(read("a.pdf", encrypted(""))) == [("p. 1", "Secret words.")]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        pytest.param("a.pdf", encrypted("pass"), "encrypted", id="encrypted"),
        ("a.pdf", b"%PDF-1.7 and no more", "damaged"),
        ("a.pdf", b"no pdf", "damaged"),
        ("a.pdf", pdf("Cut short.")[:-200], "damaged|no text"),
        ("a.pdf", pdf(""), "no text"),
        ("a.txt", b"MZ\x00\x01", "binary"),
        ("a.md", b"\x89PNG\r\n\x1a\n\x00", "binary"),
        ("a.md", b" \n\t", "no text"),
        ("a.md", b"# A heading alone", "no text"),
        ("a.html", b"<html><body></body></html>", "no text"),
        ("a.html", b"\x00\x01", "no text"),
    ],
)
def test_invalid_document_is_rejected_with_reason(name: str, content: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(name, content)


def test_too_much_text_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_TEXT", 10)
    with pytest.raises(Unreadable, match="more than 10 characters"):
        read("a.txt", b"eleven eleven")


def test_load_reads_bytes_and_checks_size(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"12345")
    assert load(path, 5) == b"12345"
    with pytest.raises(Unreadable, match="larger than 4 bytes"):
        load(path, 4)
    path.write_bytes(b"")
    with pytest.raises(Unreadable, match="empty"):
        load(path, 5)


def test_non_regular_file_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(Unreadable, match="not a regular file"):
        load(tmp_path / "pipe.txt", LARGEST)
    (tmp_path / "link.txt").symlink_to(tmp_path / "pipe.txt")
    with pytest.raises(OSError, match="symbolic links"):
        load(tmp_path / "link.txt", LARGEST)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "gone.txt", LARGEST)
