"""Random values in tests depend only on the seed and the test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DRAWING = """
from hypothesis import given, strategies as st


@given(st.lists(st.one_of(st.text(), st.integers())))
def test_draws(drawn):
    print("drawn", ascii(drawn))


def test_chooses(rng):
    print("drawn", rng.sample(range(10**6), 100))
"""


def drawn(folder: Path, seed: str, hashes: str, *loaded: str) -> list[str]:
    """Run two random tests with a seed, a hash seed and loaded modules; return what they draw."""
    plugins = ["-p", "tests.support.seeds", "-p", "_hypothesis_pytestplugin"]
    plugins += [word for name in loaded for word in ("-p", name)]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", *plugins, "test_draws.py"],
        cwd=folder,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONHASHSEED": hashes,
            "PYTHONPATH": str(ROOT),
            "THREADHOLD_SEED": seed,
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [line for line in result.stdout.splitlines() if "drawn" in line]


def test_same_seed_draws_the_same_values(tmp_path: Path) -> None:
    (tmp_path / "test_draws.py").write_text(DRAWING)
    (tmp_path / "pytest.ini").write_text("[pytest]")
    one = drawn(tmp_path, "1", "1")
    assert len(one) > 50
    assert drawn(tmp_path, "1", "2", "my_agent.icp_finder.prompts", "server.settings") == one
    # The seed changes the values of both tests.
    other = drawn(tmp_path, "2", "1")
    assert other[-1] != one[-1] and other[:-1] != one[:-1]
