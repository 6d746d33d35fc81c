"""Office files: read docx, xlsx and pptx. A worker process does it (`my_agent/parsing`).

These files are ZIP archives of XML: a small one can expand to gigabytes. The archive's own sizes
are checked first.
"""

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, TypeAlias
from zipfile import BadZipFile, ZipFile

from my_agent.parsing import Unreadable

UNPACKED = 200_000_000
"""Bytes that the archive may have unpacked."""

Part: TypeAlias = tuple[str, str, int | None]
"""Heading, text and page of a section."""


def read(content: bytes, kind: str) -> tuple[str, list[Part]]:
    """Return title and sections of a file.

    Args:
        content: the bytes of the file.
        kind: `docx`, `xlsx` or `pptx`.

    Raises:
        Unreadable: the file is damaged or encrypted, or unpacks to too much.
    """
    _check_size(content)
    try:
        return _READERS[kind](BytesIO(content))
    except MemoryError:
        raise
    except Exception as error:
        # The parsers can raise any exception on a damaged file.
        raise Unreadable(f"it is damaged ({type(error).__name__})") from error


def _check_size(content: bytes) -> None:
    try:
        with ZipFile(BytesIO(content)) as archive:
            size = sum(each.file_size for each in archive.infolist())
    except (BadZipFile, ValueError, OverflowError, NotImplementedError) as error:
        raise Unreadable("it is damaged or encrypted") from error
    if size > UNPACKED:
        raise Unreadable(f"it unpacks to more than {UNPACKED:,} bytes")


def _docx(file: BytesIO) -> tuple[str, list[Part]]:
    import docx
    from docx.table import Table

    document = docx.Document(file)
    above: dict[int, str] = {}
    parts: list[Part] = []
    lines: list[str] = []

    def end() -> None:
        if text := "\n\n".join(lines):
            parts.append((" > ".join(above[each] for each in sorted(above)), text, None))
        lines.clear()

    for block in document.iter_inner_content():
        if isinstance(block, Table):
            rows = [
                [cell.text.replace("\n", " ").strip() for cell in row.cells] for row in block.rows
            ]
            lines.append("\n".join(_table(rows)))
            continue
        style, text = str(block.style.name if block.style else ""), block.text.strip()
        if text and style.startswith("Heading ") and style[8:].isdigit():
            end()
            rank = int(style[8:])
            for each in [each for each in above if each >= rank]:
                del above[each]
            above[rank] = text
        elif text:
            lines.append(text)
    end()
    return str(document.core_properties.title or ""), parts


def _xlsx(file: BytesIO) -> tuple[str, list[Part]]:
    import openpyxl  # type: ignore[import-untyped]

    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    parts: list[Part] = []
    for sheet in book.worksheets:
        # The size in the file may be wrong, and reach to the last possible cell.
        sheet.reset_dimensions()
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True))
        parts.append((str(sheet.title), "\n".join(records(rows)), None))
    return str(book.properties.title or ""), parts


def _pptx(file: BytesIO) -> tuple[str, list[Part]]:
    import pptx

    deck = pptx.Presentation(file)
    parts: list[Part] = []
    for number, slide in enumerate(deck.slides, 1):
        title = slide.shapes.title
        heading = title.text_frame.text.strip() if title is not None else ""
        texts = []
        for shape in slide.shapes:
            if shape.has_text_frame and (title is None or shape.shape_id != title.shape_id):
                texts.append(shape.text_frame.text)
            if shape.has_table:
                rows = [[cell.text for cell in row.cells] for row in shape.table.rows]
                texts.append("\n".join(_table(rows)))
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            texts.append(slide.notes_slide.notes_text_frame.text)
        text = "\n\n".join(each.strip() for each in texts if each.strip())
        parts.append((heading or f"Slide {number}", text or heading, number))
    return str(deck.core_properties.title or ""), parts


def records(rows: Iterator[list[str]]) -> Iterator[str]:
    """Yield a paragraph for each row of a table, with the names of its columns.

    So each row can be found and quoted alone. The first row with a text is the header.
    """
    header: list[str] | None = None
    for row in rows:
        if not any(row):
            continue
        if header is None:
            header = row
            continue
        names = [*header, *[""] * (len(row) - len(header))]
        cells = zip(names, row, strict=False)
        yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in cells if cell) + "\n"
    if header is not None:
        yield "Columns: " + ", ".join(name for name in header if name)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).split())


def _table(rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"


_READERS: dict[str, Callable[[BytesIO], tuple[str, list[Part]]]] = {
    "docx": _docx,
    "xlsx": _xlsx,
    "pptx": _pptx,
}
