"""`python -m bench.turns`: print how many turns there are of each kind."""

from collections import Counter

from bench.turns import turns


def main() -> None:
    """Print the counts."""
    every = turns()
    print(f"{len(every)} turns, {sum(each['certain'] for each in every)} certain")
    for name, counted in (
        ("language", Counter(each["language"] for each in every)),
        (
            "question",
            Counter((each["situation"]["question"] or {"kind": "none"})["kind"] for each in every),
        ),
        ("act", Counter(act["kind"] for each in every for act in each["acts"])),
        ("asked for", Counter(effect for each in every for effect in each["may"])),
    ):
        print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in counted.most_common()))


if __name__ == "__main__":
    main()
