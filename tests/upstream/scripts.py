"""Scripts: the integration scripts of the SDK's source distribution, each against our server on SQLite."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.servers import Server, wait_ready
from tests.support.processes import environment, free_port, stop
from tests.upstream.suites import HERE, ROOT, sources

# A script that takes longer hangs.
PATIENCE = 60.0


def run(python: Path) -> Iterator[tuple[str, str]]:
    """Run each script, and yield those that fail with the last line of what they say."""
    folder = sources("langgraph-sdk") / "integration"
    with TemporaryDirectory() as place:
        port, log = free_port(), Path(place) / "server.log"
        url = f"http://127.0.0.1:{port}"
        command = [str(python), "-m", "threadhold", "serve", "--config", f"{folder}/langgraph.json"]
        command += ["--port", str(port), "--database-url", f"sqlite:///{place}/data.db"]
        paths = os.pathsep.join((str(ROOT), str(HERE)))
        env = {**environment(), "PYTHONPATH": paths, "APP_ENV": "local_dev"}
        with log.open("w") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            wait_ready(Server("ours", url, log, process))
            for script in sorted((folder / "scripts").glob("test_*.py")):
                said = _said(python, script, {**env, "LANGGRAPH_INTEGRATION_URL": url})
                if said is not None:
                    yield f"integration/{script.stem}", said
        finally:
            stop(process)


def _said(python: Path, script: Path, env: dict[str, str]) -> str | None:
    """Run a script. Return what it says when it fails, or None."""
    try:
        done = subprocess.run(
            [str(python), str(script)],
            cwd=script.parent,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"hangs for more than {PATIENCE:.0f} s"
    if done.returncode == 0:
        return None
    lines = [each for each in (done.stderr or done.stdout).splitlines() if each.strip()]
    return lines[-1] if lines else f"ended with {done.returncode}"
