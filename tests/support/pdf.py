"""Write minimal PDF files with text, and hostile ones."""

import zlib


def pdf(*pages: str) -> bytes:
    """Return a PDF file with one line of ASCII text a page."""
    numbers = [4 + 2 * place for place in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in zip(numbers, pages, strict=True):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    return _file(objects)


def _file(objects: list[str]) -> bytes:
    written, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return written + f"{end}startxref\n{len(written)}\n%%EOF\n".encode()


def bomb(pages: int = 1000) -> bytes:
    """Return a small PDF, each of whose pages keeps a reader busy for a second."""
    content = zlib.compress(b"BT /F1 12 Tf (x) Tj ET\n" * 45_000, 9)
    numbers = range(5, 5 + pages)
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, pages),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(content), content),
        *[page] * pages,
    ]
    body = b"%PDF-1.4\n"
    for number, each in enumerate(objects, 1):
        body += b"%d 0 obj%bendobj\n" % (number, each)
    return body + b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n0\n%%%%EOF" % (len(objects) + 1)
