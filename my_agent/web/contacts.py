"""Contacts: mail addresses and telephone numbers in the texts of websites. Pure functions."""

import re

MAX_CONTACTS = 5
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]+\.)+[a-zA-Z]{2,24}\b")
_INTERNATIONAL = re.compile(r"(?<![\w+])\+\d(?:[ ()-]{0,2}\d){7,13}(?!\d)")
# Numbers of Singapore, which have eight digits: in two groups, or behind a word such as `Tel`.
_GROUPED = re.compile(r"(?<![\d+-])(?<!\d[ .])[3689]\d{3}[ -]\d{4}(?![ -]?\d)")
_CALLED = re.compile(
    r"\b(?:tel|telephone|phone|call(?: us)?|mobile|hotline|whatsapp|fax|t|p|hp)\b[ .:]{1,3}"
    r"([3689]\d{7})(?!\d)",
    re.IGNORECASE,
)
# File names of pictures, such as `logo@2x.png`, look like mail addresses.
_PICTURE = re.compile(r"\.(png|jpe?g|gif|svg|webp)$", re.IGNORECASE)


def contacts(text: str) -> dict[str, list[str]]:
    """Extract mail addresses and telephone numbers from a text, each once. Pure."""
    mails = [each.rstrip(".").lower() for each in _EMAIL.findall(text)]
    found = [
        (match.start(), match[match.re.groups])
        for pattern in (_INTERNATIONAL, _GROUPED, _CALLED)
        for match in pattern.finditer(text)
    ]
    phones: dict[str, str] = {}
    for _, number in sorted(found):
        # The same number with and without the country's code counts once.
        phones.setdefault(re.sub(r"\D", "", number)[-8:], " ".join(number.split()))
    return {
        "emails": list(dict.fromkeys(m for m in mails if not _PICTURE.search(m)))[:MAX_CONTACTS],
        "phones": list(phones.values())[:MAX_CONTACTS],
    }
