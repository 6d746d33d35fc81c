"""Details that are extracted from a company's page."""

import pytest

from my_agent.icp_finder.enriching import MAX_CONTACTS, contacts, size


def test_contacts_are_found_once() -> None:
    text = (
        "Write to Sales@Acme.com or sales@acme.com. See logo@2x.png, a@b and info+sg@mail.acme.co.uk. "
        "Call +65 6123 4567, +65 6123 4567 or +49 (30) 123-4567; since 1990, 12345678."
    )
    assert contacts(text) == {
        "emails": ["sales@acme.com", "info+sg@mail.acme.co.uk"],
        "phones": ["+65 6123 4567", "+49 (30) 123-4567"],
    }
    assert contacts("nothing") == {"emails": [], "phones": []}


def test_number_of_contacts_is_limited() -> None:
    text = " ".join(f"person{number}@acme.com" for number in range(50))
    assert len(contacts(text)["emails"]) == MAX_CONTACTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a team of 35 engineers", "11-50"),
        ("Our team of over 1,200 in Asia", "1001+"),
        ("We have 50 employees", "11-50"),
        ("51+ professionals", "51-200"),
        ("10 people", "1-10"),
        ("500 staff", "201-500"),
        ("501 colleagues", "501-1000"),
        ("0 employees", None),
        ("35 products", None),
        ("", None),
    ],
)
def test_size(text: str, expected: str | None) -> None:
    assert size(text) == expected
