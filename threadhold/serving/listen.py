"""Listening: the sockets of a server, taken before anything else is made."""

import socket
from contextlib import suppress

from langgraph_runtime_sql.errors import RuntimeSqlError


class CannotListen(RuntimeSqlError):
    """The address or the port cannot be listened on."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        super().__init__(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. Stop the program that "
            "has the port, or choose another with --port."
        )


def bind(host: str, port: int) -> list[socket.socket]:
    """Take a port at every address of a host, and listen on none of them yet.

    Clients are refused until uvicorn listens, so that a load balancer sees no server that hangs.

    Args:
        host: A name or an address.
        port: The port.

    Raises:
        CannotListen: another program has the port, or the host is not this machine.
    """
    taken: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in _addresses(host, port):
            taken.append(_bound(family, kind, protocol, address))
    except OSError as error:
        for each in taken:
            each.close()
        raise CannotListen(host, port, error) from error
    return taken


def _addresses(
    host: str, port: int
) -> list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[object, ...]]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys(found))


def _bound(
    family: socket.AddressFamily,
    kind: socket.SocketKind,
    protocol: int,
    address: tuple[object, ...],
) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # The addresses of IPv4 are others of the list.
            with suppress(OSError):
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made
