"""JGroups 2.12 (Debian's libjgroups-java) over TCP, and with its SEQUENCER for total order.

The stack is the one that it ships for TCP, tuned: its thread pool runs what it would discard,
bundles leave after a millisecond instead of thirty, threads write to sockets themselves, and credit
is small enough that queues do not cause resends. It bundles small messages itself.
Members are a Java program, compiled when the benchmark starts, that speaks the same lines.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.runtime.processes import CaseError
from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import BURSTS, FRAMES, Alone, Member, Servers, Setting

__all__ = ["SUBJECTS"]

JAR = Path("/usr/share/java/jgroups.jar")
SOURCE = Path(__file__).parent / "jgroups" / "Member.java"
STACK = """\
<config xmlns="urn:org:jgroups">
  <TCP bind_addr="{host}" bind_port="{port}" port_range="0" loopback="true"
       recv_buf_size="4M" send_buf_size="1M" tcp_nodelay="true"
       max_bundle_size="64K" max_bundle_timeout="1" enable_bundling="true"
       enable_unicast_bundling="true" enable_diagnostics="false"
       use_send_queues="false" sock_conn_timeout="300"
       timer_type="new" timer.min_threads="2" timer.max_threads="4"
       thread_pool.enabled="true" thread_pool.min_threads="2" thread_pool.max_threads="8"
       thread_pool.queue_enabled="false"
       thread_pool.rejection_policy="Run"
       oob_thread_pool.enabled="true" oob_thread_pool.min_threads="1"
       oob_thread_pool.max_threads="8" oob_thread_pool.queue_enabled="false"
       oob_thread_pool.rejection_policy="Run"/>
  <TCPPING timeout="500" initial_hosts="{hosts}" port_range="0" num_initial_members="{n}"/>
  <pbcast.NAKACK use_mcast_xmit="false" gc_lag="0" retransmit_timeout="300,600,1200,2400,4800"
       discard_delivered_msgs="true"/>
  <UNICAST timeout="300,600,1200"/>
  <pbcast.STABLE stability_delay="1000" desired_avg_gossip="50000" max_bytes="8M"/>
  <pbcast.GMS print_local_addr="false" join_timeout="3000" view_bundling="true"/>
  {sequencer}
  <UFC max_credits="{credits}" min_threshold="0.4"/>
  <MFC max_credits="{credits}" min_threshold="0.4"/>
  <FRAG2 frag_size="60K"/>
</config>
"""


class _JGroups(Alone):
    forms = (BURSTS, FRAMES)
    sequencer = ""
    credits = "1M"
    warm_s = 4.0

    def missing(self) -> str | None:
        if not JAR.exists():
            return "there is no JGroups: apt-get install libjgroups-java"
        if shutil.which("javac") is None:
            return "there is no javac: apt-get install openjdk-17-jdk-headless"
        return None

    @asynccontextmanager
    async def servers(self, setting: Setting) -> AsyncIterator[Servers]:
        compiling = await asyncio.create_subprocess_exec(
            *("javac", "-cp", JAR, "-d", setting.place, "-nowarn", SOURCE),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await compiling.communicate()
        if compiling.returncode:
            raise CaseError(f"javac: {said.decode().splitlines()[0]}")
        yield Servers()

    def command(self, setting: Setting) -> list[str] | None:
        host, port = setting.host_port(setting.me)
        pairs = (setting.host_port(member) for member in range(setting.n))
        hosts = ",".join(f"{one}[{two}]" for one, two in pairs)
        stack = setting.directory / f"stack{setting.me}.xml"
        stack.write_text(
            STACK.format(
                host=host,
                port=port,
                hosts=hosts,
                n=setting.n,
                sequencer=self.sequencer,
                credits=self.credits,
            )
        )
        return [
            *("java", "-Xms256m", "-Xmx512m", "-Djava.net.preferIPv4Stack=true"),
            *("-cp", f"{setting.place}:{JAR}", "Member"),
            *(str(stack), str(setting.me), str(setting.n), str(setting.payload_bytes)),
        ]

    async def join(self, setting: Setting, sink: Sink) -> Member:
        raise AssertionError("its members are Java")


class JGroups(_JGroups):
    name = "jgroups"
    order = "fifo"
    remarks = "2.12 over TCP, tuned"


class Sequencer(_JGroups):
    name = "jgroups, sequencer"
    order = "total"
    remarks = "2.12 over TCP, tuned, with SEQUENCER"
    sequencer = "<SEQUENCER/>"
    credits = "500K"


SUBJECTS = (JGroups(), Sequencer())
