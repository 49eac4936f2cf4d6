"""Corosync's closed process groups (CPG): total order by a token that goes round (Totem).

A daemon for each member, each in its own mount and UTS namespace (they would share socket names
and take each other's place otherwise), talking over loopback addresses without encryption; the
members speak to their daemon through libcpg. Tuned: a larger window for each turn of the token, and
no real-time priority, with which the daemons would leave the members no processor on a host that
they share. Totem packs small messages itself. Needs root.
"""

from __future__ import annotations

import asyncio
import ctypes
import ctypes.util
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.runtime.peers.meeting import everyone_is_here
from benchmarks.runtime.processes import CaseError, Child, free_addresses, started
from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import BURSTS, FRAMES, Alone, Member, Servers, Setting

__all__ = ["SUBJECTS"]

ROOT = Path(__file__).parents[3]
CONFIGURATION = """\
system {{
    sched_rr: no
    priority: 0
    move_to_root_cgroup: no
}}
totem {{
    version: 2
    cluster_name: benchmark
    transport: knet
    crypto_cipher: none
    crypto_hash: none
    token: 3000
    window_size: 128
    max_messages: 32
    interface {{
        linknumber: 0
        mcastport: {port}
    }}
}}
nodelist {{
{nodes}
}}
logging {{
    to_stderr: yes
    to_syslog: no
    to_logfile: no
}}
"""
# Everything that two daemons on one host would share is private here.
START = """\
set -e
hostname node{number}
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
mkdir /run/case
mount --bind {case} /run/case
mount -t tmpfs tmpfs /tmp
mkdir -p {case}
mount --bind /run/case {case}
mkdir -p /var/lib/corosync /var/log/corosync
mount -t tmpfs tmpfs /var/lib/corosync
mount -t overlay overlay -o lowerdir=/etc,upperdir={place}/upper,workdir={place}/work /etc
mkdir -p /etc/libqb
touch /etc/libqb/force-filesystem-sockets
exec corosync -f -c {place}/corosync.conf
"""

_OK, _TRY_AGAIN = 1, 6
_DISPATCH_ALL = 2
_AGREED = 2


class _Name(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("value", ctypes.c_char * 128))


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_char_p), ("length", ctypes.c_size_t))


_Deliver = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32),
    *(ctypes.c_void_p, ctypes.c_size_t),
)
_Changed = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_uint64, ctypes.c_void_p),
    *(ctypes.c_void_p, ctypes.c_size_t) * 3,
)


class _Callbacks(ctypes.Structure):
    _fields_ = (("deliver", _Deliver), ("changed", _Changed))


class _Member:
    def __init__(self, setting: Setting, sink: Sink) -> None:
        self._library = ctypes.CDLL("libcpg.so.4")
        self._handle = ctypes.c_uint64()
        self.members = 0
        mine = setting.me + 1
        take, string_at = sink.take, ctypes.string_at

        def deliver(_handle: int, _name: int, node: int, _pid: int, at: int, size: int) -> None:
            if node != mine:
                take(string_at(at, size))

        def changed(_handle: int, _name: int, _members: int, count: int, *_rest: int) -> None:
            self.members = count

        # Kept, or they would be collected while the library calls them.
        self._callbacks = _Callbacks(_Deliver(deliver), _Changed(changed))

    async def join(self, n: int) -> None:
        library, handle = self._library, self._handle
        for _ in range(100):
            said = library.cpg_initialize(ctypes.byref(handle), ctypes.byref(self._callbacks))
            if said == _OK:
                break
            await asyncio.sleep(0.1)
        else:
            raise CaseError(f"cpg_initialize says {said}")
        fd = ctypes.c_int()
        library.cpg_fd_get(handle, ctypes.byref(fd))
        asyncio.get_running_loop().add_reader(fd.value, self._dispatch)
        name = _Name(9, b"benchmark")
        while library.cpg_join(handle, ctypes.byref(name)) == _TRY_AGAIN:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        while self.members < n:  # noqa: ASYNC110 (a callback of the library sets it)
            await asyncio.sleep(0.05)

    def _dispatch(self) -> None:
        self._library.cpg_dispatch(self._handle, _DISPATCH_ALL)

    async def publish(self, blobs: Sequence[bytes]) -> None:
        send, handle = self._library.cpg_mcast_joined, self._handle
        for blob in blobs:
            vector = _Vector(blob, len(blob))
            tries = 0
            while (said := send(handle, _AGREED, ctypes.byref(vector), 1)) == _TRY_AGAIN:
                # The token has not come round: read meanwhile.
                tries += 1
                await asyncio.sleep(0 if tries < 20 else 0.001)
            if said != _OK:
                raise CaseError(f"cpg_mcast_joined says {said}")

    async def close(self) -> None:
        self._library.cpg_finalize(self._handle)


class Corosync(Alone):
    name = "corosync"
    order = "total"
    remarks = "CPG over knet, tuned"
    forms = (BURSTS, FRAMES)

    def missing(self) -> str | None:
        if shutil.which("corosync") is None or ctypes.util.find_library("cpg") is None:
            return "there is no Corosync: apt-get install corosync libcpg4"
        if os.geteuid() != 0:
            return "several daemons on one host need namespaces: run as root"
        return None

    @asynccontextmanager
    async def servers(self, setting: Setting) -> AsyncIterator[Servers]:
        (address,) = free_addresses(1)
        port = int(address.rpartition(":")[2])
        nodes = "\n".join(
            f"    node {{\n        nodeid: {me + 1}\n        name: node{me + 1}\n"
            f"        ring0_addr: 127.0.0.{me + 1}\n    }}"
            for me in range(setting.n)
        )
        async with AsyncExitStack() as stack:
            daemons: list[Child] = []
            for me in range(setting.n):
                place = setting.directory / f"node{me}"
                for name in ("upper", "work"):
                    (place / name).mkdir(parents=True)
                (place / "corosync.conf").write_text(CONFIGURATION.format(port=port, nodes=nodes))
                script = START.format(number=me + 1, place=place, case=setting.place)
                command = ["unshare", "--mount", "--uts", "sh", "-c", script]
                daemons.append(await stack.enter_async_context(started(command, place / "log")))
            pids = [daemon.pid for daemon in daemons]
            await asyncio.sleep(1)
            yield Servers(
                pids=pids,
                prefix=[
                    [
                        *("env", f"PYTHONPATH={ROOT}"),
                        *("nsenter", f"--target={pid}", "--mount", "--uts", "--"),
                    ]
                    for pid in pids
                ],
            )

    async def join(self, setting: Setting, sink: Sink) -> Member:
        member = _Member(setting, sink)
        await member.join(setting.n)
        await everyone_is_here(setting)
        return member


SUBJECTS = (Corosync(),)
