"""Generate a register of companies that do not exist, in the format of the public register.

`python -m bench.icp.made_up FILE` writes it; `reference/made_up_register.csv` is a copy.
No real company can match: each name contains "(MADE UP)", and no real UEN contains `MU`.
"""

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

COUNT = 300
COLUMNS = (
    *("uen", "entity_name", "entity_type_description", "entity_status_description"),
    *("registration_incorporation_date", "primary_ssic_code", "primary_ssic_description"),
    *("secondary_ssic_code", "secondary_ssic_description", "block", "street_name", "postal_code"),
)
NAMES = (
    *("ORCHID", "LANTERN", "BANYAN", "HARBOUR", "MERIDIAN", "KINGFISHER", "COBALT", "SALTWATER"),
    *("NIMBUS", "TAMARIND", "QUARRY", "FIREFLY", "ANCHOR", "PAPAYA", "GRANITE", "MONSOON"),
    *("PELICAN", "SAFFRON", "TIDEWAY", "JUNIPER", "COPPER", "STARLING", "BAMBOO", "HORIZON"),
    *("MANGROVE", "OTTER", "LOTUS", "CINNABAR", "DRIFTWOOD", "PIONEER", "CASCADE", "MARIGOLD"),
)
# A word for the name, the SSIC code, and the activity in our own words.
ACTIVITIES = (
    ("SOFTWARE", "62011", "Software and application development"),
    ("SYSTEMS", "62021", "IT consultancy"),
    ("CLOUD", "63111", "Data analytics and processing"),
    ("HOSTING", "63112", "Web hosting"),
    ("CYBER", "62022", "Information security services"),
    ("FREIGHT", "52292", "Freight forwarding"),
    ("LOGISTICS", "52101", "General warehousing"),
    ("COLD CHAIN", "52102", "Refrigerated warehousing"),
    ("HAULAGE", "49232", "Goods transport by road"),
    ("SHIPPING", "50021", "Sea freight"),
    ("TRADING", "46900", "General wholesale, import and export"),
    ("MACHINERY", "46594", "Wholesale of industrial machinery"),
    ("ELECTRONICS", "46521", "Wholesale of electronic components"),
    ("FOODS", "46309", "Wholesale of food"),
    ("BUILDING SUPPLIES", "46631", "Wholesale of building materials"),
    ("ONLINE", "47911", "Retail over the internet"),
    ("FASHION", "47711", "Retail of clothing"),
    ("PHARMACY", "47721", "Retail of medicines"),
    ("RESTAURANTS", "56111", "Restaurants"),
    ("CAFES", "56112", "Cafes"),
    ("CATERING", "56200", "Catering of events"),
    ("HOTELS", "55101", "Hotels"),
    ("BUILDERS", "41001", "Construction of buildings"),
    ("ENGINEERING WORKS", "42901", "Civil engineering works"),
    ("ELECTRICAL", "43210", "Electrical works"),
    ("INTERIORS", "43301", "Renovation and fitting out"),
    ("PRECISION", "25920", "Precision machining of metal parts"),
    ("CHEMICALS", "20299", "Manufacture of specialty chemicals"),
    ("BIOPHARMA", "21011", "Manufacture of medicines"),
    ("MEDICAL DEVICES", "32502", "Manufacture of medical devices"),
    ("SEMICONDUCTORS", "26112", "Manufacture of semiconductor devices"),
    ("BAKERIES", "10712", "Manufacture of bread and cakes"),
    ("MARINE", "30110", "Building and repair of ships"),
    ("SOLAR", "35101", "Generation of electricity"),
    ("RECYCLING", "38300", "Recovery of waste materials"),
    ("CONSULTING", "70201", "Management consultancy"),
    ("ACCOUNTING", "69201", "Accounting and audit"),
    ("LEGAL", "69100", "Legal services"),
    ("ARCHITECTS", "71111", "Architectural services"),
    ("DESIGN", "74192", "Graphic and interior design"),
    ("MARKETING", "73100", "Advertising"),
    ("STAFFING", "78104", "Recruitment and employment agencies"),
    ("CLEANING", "81211", "Cleaning of buildings"),
    ("SECURITY", "80001", "Security services"),
    ("EVENTS", "82302", "Organising of events and exhibitions"),
    ("CAPITAL", "66301", "Fund management"),
    ("INSURANCE BROKERS", "66220", "Insurance broking"),
    ("PAYMENTS", "66193", "Payment services"),
    ("PROPERTIES", "68201", "Real estate agency"),
    ("ACADEMY", "85499", "Training courses"),
    ("CLINICS", "86201", "Medical clinics"),
    ("DENTAL", "86203", "Dental clinics"),
    ("FITNESS", "93119", "Gyms and fitness studios"),
)
TYPES = (("PTE. LTD.", "Local Company"), ("LLP", "Limited Liability Partnerships (LLP)"))
STATUSES = ("Live Company", "Live", "Struck Off", "Live Company", "Gazetted To Be Struck Off")
STREETS = ("MADE UP ROAD", "NOWHERE LANE", "EXAMPLE AVENUE", "SAMPLE STREET")


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the companies, the same ones in each call."""
    for number in range(COUNT):
        word, code, activity = ACTIVITIES[number % len(ACTIVITIES)]
        # Step sizes without a common factor with the list lengths, so that combinations do not
        # repeat.
        name = NAMES[(number * 7) % len(NAMES)]
        ending, kind = TYPES[number % 9 == 4]
        status = STATUSES[number % 11 % len(STATUSES)] if number % 11 > 6 else STATUSES[0]
        other = ACTIVITIES[(number * 5 + 3) % len(ACTIVITIES)] if number % 3 == 0 else None
        yield (
            f"T99MU{number:04}{'ABCDEFGHJK'[number % 10]}",
            f"{name} {word} (MADE UP) {ending}",
            kind,
            status,
            f"{1995 + number % 30}-{1 + number % 12:02}-{1 + number % 28:02}",
            code,
            activity.upper(),
            other[1] if other else "na",
            other[2].upper() if other else "na",
            str(1 + number),
            STREETS[number % len(STREETS)],
            f"{900000 + number}" if number % 13 else "na",
        )


def text() -> str:
    """Return the content of the CSV file."""
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows())
    return lines.getvalue()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
