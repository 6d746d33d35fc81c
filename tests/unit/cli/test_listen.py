"""Sockets of a server: taken early, and refusing until it listens."""

import socket
from contextlib import closing

import pytest

from threadhold.serving.listen import CannotListen, bind


def test_a_port_is_taken_and_clients_are_refused_until_it_listens() -> None:
    [taken] = bind("127.0.0.1", 0)
    with closing(taken):
        address = taken.getsockname()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=5)
        taken.listen()
        socket.create_connection(address, timeout=5).close()


def test_a_name_is_every_address_of_it() -> None:
    taken = bind("localhost", 0)
    try:
        expected = {found[4][0] for found in socket.getaddrinfo("localhost", 0)}
        assert {each.getsockname()[0] for each in taken} == expected
    finally:
        for each in taken:
            each.close()


def test_a_port_that_another_program_has_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}: Address already in use.*--port"):
            bind("127.0.0.1", port)


def test_an_address_of_another_machine_is_one_sentence() -> None:
    with pytest.raises(CannotListen, match=r"Cannot listen on 192\.0\.2\.1:"):
        bind("192.0.2.1", 0)


def test_a_name_that_nobody_has_is_one_sentence() -> None:
    with pytest.raises(CannotListen, match=r"Cannot listen on nobody.invalid:1:"):
        bind("nobody.invalid", 1)
