"""Builder: runs buildah, which interprets a Dockerfile without a daemon, and containers of its images.

Containers are chroots in namespaces of their own, on the network of the host.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import stop

# The driver needs no file system of its own. Chroots need no container engine.
OPTIONS = {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
# Seconds.
BUILD = 1800


def require() -> None:
    """End with what to install, if something is missing."""
    missing = [name for name in ("buildah", "mmdebstrap", "node", "npm") if not shutil.which(name)]
    if missing:
        raise SystemExit(
            f"image: install {' and '.join(missing)}, such as with apt, and run as root"
        )


def ran(command: list[str], *, seconds: float = BUILD, cwd: Path | None = None) -> str:
    """Run a command to its end, and return what it printed.

    Raises:
        SystemExit: it failed; with the end of its output.
    """
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **OPTIONS},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-6000:]
        raise SystemExit(f"image: {' '.join(command)} failed:\n{said}")
    return done.stdout


def buildah(*arguments: str) -> str:
    """Run buildah, and return what it printed."""
    return ran(["buildah", *arguments])


def built(dockerfile: str, context: Path, tag: str, folder: Path) -> None:
    """Build an image from the text of a Dockerfile, every step of it.

    Args:
        dockerfile: The text.
        context: The folder that it copies from, with its `.dockerignore`.
        tag: The name of the image.
        folder: Where the text is written.
    """
    path = folder / f"{tag}.Dockerfile"
    path.write_text(dockerfile)
    # One layer: the storage driver copies each.
    options = ["--pull-never", "--layers=false", "--format", "docker", "--tag", tag]
    ran(["buildah", "bud", *options, "--file", str(path), str(context)])


@contextmanager
def container(image: str) -> Iterator[str]:
    """Give a container of an image until the end of the block."""
    name = buildah("from", "--pull-never", image).strip()
    try:
        yield name
    finally:
        buildah("rm", name)


def command_of(image: str) -> list[str]:
    """Return what a container of an image runs: ENTRYPOINT and CMD."""
    config = json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    return [*config.get("Entrypoint", ()), *config.get("Cmd", ())]


@contextmanager
def running(name: str, command: list[str], log: Path, **env: str) -> Iterator[None]:
    """Run a command in a container until the end of the block, with its user and folder.

    Args:
        name: The container.
        command: What runs.
        log: The file for its output.
        env: More variables.
    """
    given = [option for key, value in env.items() for option in ("--env", f"{key}={value}")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["buildah", "run", *given, name, "--", *command],
            env={**os.environ, **OPTIONS},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        stop(process)
