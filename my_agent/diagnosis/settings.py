"""Settings of the graph `diagnosis`."""

from typing import ClassVar

from pydantic import Field, field_validator

from my_agent.diagnosis.connector import MOST, Connector, parsed
from my_agent.settings import EnvironmentSettings
from threadhold.addresses import Network


class DiagnosisSettings(EnvironmentSettings):
    """Limits of sources, probes and streams; each field is an environment variable."""

    PREFIX: ClassVar[str] = "DIAGNOSIS_"

    source_max_bytes: int = Field(
        default=50 * 1024 * 1024, gt=0, le=2**30, description="Largest uploaded file, in bytes"
    )
    max_session_chars: int = Field(
        default=200_000_000, gt=0, description="Characters of all sources of one session"
    )
    max_probes: int = Field(
        default=3, ge=0, le=10, description="Hosts that one message can have probed; 0: none"
    )
    probe_seconds: float = Field(
        default=5.0, gt=0, le=60, description="Maximum time of one probe, in seconds"
    )
    private_networks: tuple[Network, ...] = Field(
        default=(),
        description="Private networks whose hosts may be probed, such as `10.1.0.0/16`, "
        "separated by commas",
    )
    max_followers: int = Field(
        default=50, gt=0, description="Streams of events that a tenant can follow in one process"
    )
    connectors: tuple[Connector, ...] = Field(
        default=(),
        max_length=MOST,
        description="MCP servers whose tools the diagnosis may ask, as a JSON list "
        "([fields](../how-to/connectors.md#fields))",
    )

    model_seconds: float = Field(
        default=60.0,
        gt=0,
        le=3600,
        description="Maximum time of one answer of the model that looks at the evidence, in seconds",
    )

    @field_validator("private_networks", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(network.strip() for network in value.split(",") if network.strip())
        return value

    @field_validator("connectors", mode="before")
    @classmethod
    def _parse(cls, value: object) -> object:
        return parsed(value)
