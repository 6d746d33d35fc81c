"""`python -m bench.runbooks`: measure how often the right runbook is quoted, and a wrong one never."""

import sys

from bench.runbooks.quality import cases, library

OWED = 0.9


def main() -> int:
    """Print the figures, and return 1 if a bound is missed."""
    lines = []
    found = list(cases(library()))
    for name in dict.fromkeys(each.set for each in found):
        own = [each for each in found if each.set == name]
        wanted = [each for each in own if each.runbook]
        right = sum(each.is_found for each in wanted) / len(wanted)
        lines.append((f"{name}: right runbook quoted, of {len(wanted)}", right, right >= OWED))
        wrong = sum(each.is_false for each in own)
        lines.append((f"{name}: wrong runbook quoted, of {len(own)}", wrong, wrong == 0))
    for text, value, good in lines:
        print(f"{text:45} {value:6.2f}  {'pass' if good else 'FAIL'}")
    return 0 if all(good for *_, good in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
