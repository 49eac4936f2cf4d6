"""What a session must have for a stream whose state is kept by Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ordercast.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "LOCAL_CHECKPOINT",
    "SESSION_SETTINGS",
    "SETTINGS",
    "require_protobuf",
    "require_rocksdb",
]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SETTINGS = {
    PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""State in RocksDB, of which a batch writes only what has changed. And rows go to Python by number,
ten thousand at a time unless the session says otherwise: a limit in bytes, unless it is this one,
has Spark add up all columns anew for every row."""
LOCAL_CHECKPOINT = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""For a checkpoint on a disk of this machine: Spark's default starts a process for each look at a
file, dozens in a batch."""
SESSION_SETTINGS = {
    **SETTINGS,
    **LOCAL_CHECKPOINT,
    # Rows come and go through Arrow's memory, in arrays of megabytes. The collector that Java would
    # choose treats such arrays one by one, and Arrow looks at every access whether it is allowed.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true"
    ),
    "spark.python.authenticate.socketTimeout": "120s",  # workers start slowly on a busy machine
}
"""What a session should have that is started for a stream, on this machine."""


def require_protobuf() -> None:
    """Spark's Python workers speak to the state store in protocol buffers."""
    try:
        import_module("google.protobuf.descriptor")
    except ImportError:
        raise SetupError(
            "Spark keeps state for Python only with protobuf, which is not installed here: "
            "pip install 'ordercast[spark]'"
        ) from None


def require_rocksdb(spark: SparkSession) -> None:
    if not str(spark.conf.get(PROVIDER, "")).endswith("RocksDBStateStoreProvider"):
        raise SetupError(
            "this Spark session keeps state in memory, and the order of a stream is kept in "
            f'RocksDB: spark.conf.set("{PROVIDER}", "{SETTINGS[PROVIDER]}")'
        )
