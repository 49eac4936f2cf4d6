"""Ports that stay a member's own, however often it dies."""

from __future__ import annotations

import socket

from ordercast.runtime.node import HOST

__all__ = ["reserve"]


def reserve() -> socket.socket:
    """A port that nobody else gets while a member is down: bound, and not listened at.

    Linux lets another socket listen there as long as both allow the address to be used again.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind((HOST, 0))
    return reserved
