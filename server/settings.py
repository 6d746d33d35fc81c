"""Settings of the example application: of the server, of identity and of the thread policy."""

from pydantic_settings import SettingsConfigDict

from hooks.thread_settings import ThreadSettings
from threadhold.auth import IdentitySettings
from threadhold.settings import Settings as ServerSettings


class Settings(ServerSettings, IdentitySettings, ThreadSettings):
    """The settings of `python -m server`. Variables are the names in capitals."""

    model_config = SettingsConfigDict(env_file=".env")
