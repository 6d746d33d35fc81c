"""Settings of the graph `icp_finder`."""

from ipaddress import IPv4Network, IPv6Network

from pydantic import Field, field_validator

from my_agent.settings import EnvironmentSettings

Network = IPv4Network | IPv6Network


class IcpSettings(EnvironmentSettings):
    """Limits of age, number and time; each field is an environment variable."""

    profile_staleness_days: float = Field(
        default=14.0, ge=0, description="A company's profile is stale after so many days"
    )
    discovery_staleness_days: float = Field(
        default=14.0, ge=0, description="Candidates are stale after so many days"
    )
    icp_rule_name: str = Field(
        default="Default ICP",
        min_length=1,
        max_length=100,
        description="Rule of a thread that names neither a website nor a rule",
    )
    run_now_limit: int = Field(
        default=10, ge=1, le=100, description="Candidates that are enriched while the user waits"
    )
    run_later_limit: int = Field(
        default=40,
        ge=0,
        le=1000,
        description="Candidates after those that a background job enriches; 0 for no job",
    )
    icp_site_seconds: float = Field(
        default=10.0, gt=0, le=120, description="Seconds that reading a website may take"
    )
    icp_private_networks: tuple[Network, ...] = Field(
        default=(),
        description="Networks such as `10.1.0.0/16` whose websites are read although they are "
        "private, separated by commas",
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
