"""The properties as they are defined, literal and slow: it judges the judges, on small traces."""

from ordercast.oracle.judge import judge

__all__ = ["judge"]
