"""Threadhold's own program: serve any project, with only the runtime's tables.

The functions import late, so that `--help` does not load the server.
"""

from pydantic_settings import SettingsConfigDict
from starlette.applications import Starlette

from threadhold.auth.settings import IdentitySettings
from threadhold.program import Program
from threadhold.settings import Settings


class OwnSettings(Settings, IdentitySettings):
    """The settings of `threadhold`: of the server, and of its authentication."""

    model_config = SettingsConfigDict(env_file=".env")


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """Make the app of `threadhold.host`."""
    from threadhold import host

    return host.create_app(settings, studio=studio)


THREADHOLD = Program(
    name="threadhold",
    settings=OwnSettings,
    create_app=create_app,
    # `-P`: a folder `threadhold` in the working directory must not shadow the package.
    launch=("-P", "-m", "threadhold"),
)
