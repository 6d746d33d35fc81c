"""Host names: recognize the loopback names and addresses."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address or name, which only this machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
