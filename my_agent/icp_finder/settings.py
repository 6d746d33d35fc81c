"""Settings of the graph `icp_finder`."""

from pydantic import Field, field_validator

from my_agent.settings import EnvironmentSettings
from threadhold.addresses import Network


class IcpSettings(EnvironmentSettings):
    """Limits of age, number and time; each field is an environment variable."""

    profile_staleness_days: float = Field(
        default=14.0, ge=0, description="Age at which a company's profile is stale, in days"
    )
    discovery_staleness_days: float = Field(
        default=14.0, ge=0, description="Age at which candidates are stale, in days"
    )
    icp_rule_name: str = Field(
        default="Default ICP",
        min_length=1,
        max_length=100,
        description="Name of the rule for a thread that names neither a website nor a rule",
    )
    run_now_limit: int = Field(
        default=10,
        ge=1,
        le=100,
        description="Maximum number of candidates that the run enriches while the user waits",
    )
    run_later_limit: int = Field(
        default=40,
        ge=0,
        le=1000,
        description="Maximum number of further candidates that a background job enriches; "
        "0: no job",
    )
    icp_site_seconds: float = Field(
        default=10.0, gt=0, le=120, description="Maximum time to read a website, in seconds"
    )
    icp_private_networks: tuple[Network, ...] = Field(
        default=(),
        description="Private networks whose websites may be read, such as `10.1.0.0/16`, "
        "separated by commas",
    )
    icp_web_search: bool = Field(
        default=True, description="Search the web for candidates and their websites"
    )

    @field_validator("icp_private_networks", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(network.strip() for network in value.split(",") if network.strip())
        return value

    @property
    def wanted(self) -> int:
        """Return the maximum number of candidates that are needed."""
        return self.run_now_limit + self.run_later_limit
