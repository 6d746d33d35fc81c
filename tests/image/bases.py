"""Base images: stand-ins for `python:X-slim` and `node:X-slim`, where no registry can be reached.

Each is Debian with the interpreter of this machine at the place where the official image has it.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.image.builder import buildah, ran

DEBIAN = "bookworm"
# What the interpreters are linked with.
LIBRARIES = (
    "ca-certificates,libssl3,libffi8,libsqlite3-0,zlib1g,libbz2-1.0,libreadline8,liblzma5,"
    "libncursesw6,libuuid1,libexpat1,libstdc++6"
)
# How this machine reaches package indexes. The official images need none of it.
TRUSTED = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "NO_PROXY")


def root(folder: Path) -> Path:
    """Return the archive of a small Debian, which is made at the first call."""
    archive = folder / f"{DEBIAN}.tar"
    if not archive.exists():
        partial = archive.with_suffix(".partial.tar")
        include = f"--include={LIBRARIES}"
        ran(["mmdebstrap", "--variant=minbase", include, DEBIAN, str(partial)], seconds=1800)
        partial.rename(archive)
    return archive


def make_python(folder: Path, tag: str, python: str) -> None:
    """Make `python:TAG`, with the interpreter whose path is given, as `python` and `python3`."""
    prefix = _asked(python, "import sys; print(sys.base_prefix)")
    container = _debian(folder)
    # `/.` copies what is in the folder.
    buildah("copy", "--quiet", container, f"{prefix}/.", "/usr/local")
    buildah("run", container, "--", "ldconfig")
    buildah("run", container, "--", "ln", "-sf", "python3", "/usr/local/bin/python")
    buildah("run", container, "--", "python", "-m", "pip", "--version")
    _commit(container, f"docker.io/library/python:{tag}")


def make_node(folder: Path, tag: str) -> None:
    """Make `node:TAG`, with this machine's Node and npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise SystemExit("image: Node and npm are missing")
    container = _debian(folder)
    buildah("copy", "--quiet", container, str(Path(node).resolve()), "/usr/local/bin/node")
    modules = Path(npm).resolve().parents[2]
    buildah("copy", "--quiet", container, f"{modules}/npm", "/usr/local/lib/node_modules/npm")
    for name in ("npm", "npx"):
        target = f"../lib/node_modules/npm/bin/{name}-cli.js"
        buildah("run", container, "--", "ln", "-s", target, f"/usr/local/bin/{name}")
    buildah("run", container, "--", "npm", "--version")
    _commit(container, f"docker.io/library/node:{tag}")


def _debian(folder: Path) -> str:
    container = buildah("from", "scratch").strip()
    buildah("add", "--quiet", container, str(root(folder)), "/")
    for path in TRUSTED:
        if Path(path).exists():
            buildah("copy", "--quiet", container, path, path)
    for name in VARIABLES:
        if value := os.environ.get(name):
            buildah("config", "--env", f"{name}={value}", container)
    path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    buildah("config", "--env", path, container)
    return container


def _commit(container: str, name: str) -> None:
    buildah("commit", "--quiet", container, name)
    buildah("rm", container)


def _asked(python: str, code: str) -> str:
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()
