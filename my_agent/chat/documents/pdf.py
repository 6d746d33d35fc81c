"""PDF: extract the text of a file. A worker process does it (`my_agent/parsing`).

A small PDF can expand to gigabytes, or keep the parser busy for hours.
"""

import logging
from dataclasses import dataclass
from io import BytesIO

from my_agent.parsing import Unreadable


@dataclass(frozen=True)
class Pdf:
    """The text of a PDF.

    Attributes:
        title: the title in its metadata, or empty.
        pages: the text of each page.
    """

    title: str
    pages: tuple[str, ...]


def read(content: bytes) -> Pdf:
    """Extract the text of a PDF.

    Raises:
        Unreadable: the file is encrypted or damaged.
    """
    # Imported late: only workers need them.
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    # pypdf logs a message for each irregularity, and real files have many.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is encrypted")
        pages = tuple(page.extract_text() for page in reader.pages)
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except FileNotDecryptedError:
        raise Unreadable("it is encrypted") from None
    except (MemoryError, Unreadable):
        raise
    except Exception as error:
        # The parser can raise any exception on a damaged file.
        raise Unreadable(f"it is damaged ({type(error).__name__})") from error
    return Pdf(title, pages)
