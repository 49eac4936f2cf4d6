"""What has to be installed, told in a sentence where an ImportError would be thrown."""

from __future__ import annotations

from importlib import import_module

from ordercast.errors import SetupError

__all__ = ["require_kernels", "require_pyspark"]


def require_pyspark(what: str = "judging a trace") -> None:
    _require("pyarrow", "pyspark", sentence=(
        f"{what} needs Spark, which is not installed here: pip install 'ordercast[spark]'"
    ))  # fmt: skip


def require_kernels() -> None:
    """All that judging in this process takes."""
    _require("numba", "numpy", "pyarrow", sentence=(
        "judging a trace in one process needs packages that are not all installed here: "
        "pip install 'ordercast[judge]'"
    ))  # fmt: skip


def _require(*packages: str, sentence: str) -> None:
    try:
        for package in packages:
            import_module(package)
    except ImportError:
        raise SetupError(sentence) from None
