"""The properties as they are defined, literal and slow: it judges the judges, on small traces."""

from ordercast.oracle.judge import judge, told

__all__ = ["judge", "told"]
