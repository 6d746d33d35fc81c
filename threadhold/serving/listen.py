"""Listening: bind the sockets of a server before anything else is created."""

import socket
from contextlib import suppress

from langgraph_runtime_sql.errors import RuntimeSqlError


class CannotListen(RuntimeSqlError):
    """The server cannot listen on an address or port."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        super().__init__(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. Stop the program that "
            "has the port, or choose another with --port."
        )


def bind(host: str, port: int) -> list[socket.socket]:
    """Bind a port at every address of a host, without listening.

    The kernel refuses connections until uvicorn listens, so a load balancer sees no hanging
    server.

    Args:
        host: A name or an address.
        port: The port.

    Raises:
        CannotListen: another program has the port, or the host is not this machine.
    """
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            made = socket.socket(family, kind, protocol)
            sockets.append(made)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # IPv4 addresses have sockets of their own.
                with suppress(OSError):
                    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(address)
    except OSError as error:
        for each in sockets:
            each.close()
        raise CannotListen(host, port, error) from error
    return sockets
