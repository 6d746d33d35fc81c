"""Reading office files and CSV."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import openpyxl
import pptx
import pytest

from my_agent.chat.documents import office
from my_agent.chat.documents.reading import Unreadable, parse


def _docx() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Handbook"
    document.add_heading("Leave", 1)
    document.add_paragraph("Everyone has thirty days.")
    document.add_heading("Sickness", 2)
    table = document.add_table(2, 2)
    for row, cells in enumerate([("Day", "Pay"), ("First", "Full")]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    return _saved(document.save)


def _xlsx() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Bridges"
    for row in (["Name", "Number", "Span"], ["Tolv", "A2408", 41.0], ["Skarra", "B17", None]):
        sheet.append(row)
    return _saved(book.save)


def _pptx() -> bytes:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Budget"
    slide.placeholders[1].text = "We spend 12,500 crowns."
    return _saved(deck.save)


def _saved(save: Callable[[BytesIO], object]) -> bytes:
    file = BytesIO()
    save(file)
    return file.getvalue()


def test_word_file_keeps_headings_and_tables() -> None:
    found = parse(Path("a.docx"), _docx())
    assert found.title == "Handbook"
    assert [(each.heading, each.text) for each in found.sections] == [
        ("Leave", "Everyone has thirty days."),
        ("Leave > Sickness", "| Day | Pay |\n|---|---|\n| First | Full |"),
    ]


def test_rows_of_a_sheet_have_the_names_of_their_columns() -> None:
    [sheet] = parse(Path("a.xlsx"), _xlsx()).sections
    assert sheet.heading == "Bridges"
    assert "Name: Tolv; Number: A2408; Span: 41\n" in sheet.text
    assert "Name: Skarra; Number: B17\n" in sheet.text


def test_slides_have_numbers() -> None:
    [slide] = parse(Path("a.pptx"), _pptx()).sections
    assert (slide.heading, slide.text, slide.page) == ("Budget", "We spend 12,500 crowns.", 1)


def test_csv_is_read_by_row() -> None:
    [rows] = parse(Path("a.csv"), "Name;City\nAda;São Tomé\n".encode()).sections
    assert rows.text.startswith("Name: Ada; City: São Tomé")


def bomb() -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"xl/{number}.xml", b"\0" * (office.UNPACKED // 2))
    return file.getvalue()


@pytest.mark.parametrize("suffix", ["docx", "xlsx", "pptx"])
def test_bomb_and_damaged_file_are_unreadable(suffix: str) -> None:
    for content, reason in ((bomb(), "unpacks to more than"), (b"PK\3\4 nothing", "damaged")):
        with pytest.raises(Unreadable, match=reason):
            parse(Path(f"a.{suffix}"), content)
    with ZipFile(file := BytesIO(), "w") as archive:
        archive.writestr("empty.xml", "")
    with pytest.raises(Unreadable, match="damaged"):
        parse(Path(f"a.{suffix}"), file.getvalue())
