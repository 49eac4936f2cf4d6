"""What happened at the boundary with the user, one row per event: the contract between
whatever runs (simulator, sockets, other systems) and whatever judges (oracle, Spark, report)."""

from ordercast.trace.directory import Trace, TraceWriter, read_events, read_manifests
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest
from ordercast.trace.recorder import Recorder

__all__ = [
    "Event",
    "Manifest",
    "Recorder",
    "Trace",
    "TraceWriter",
    "read_events",
    "read_manifests",
]
