"""Logs for machines: one JSON object a line, with who it is about and what happened.

Standard `logging` is used throughout; without this formatter the lines are for people. Every
record about a member has `event`, `group`, `member` and, where there is one, `peer` as attributes,
so that a formatter or a filter of your own finds them as well, and tells two groups of one process
apart.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

__all__ = ["JsonFormatter", "about"]


def about(event: str, member: str, peer: str | None = None, *, group: str) -> dict[str, str]:
    """For `extra=` of a log call."""
    facts = {"event": event, "group": group, "member": member}
    return facts if peer is None else facts | {"peer": peer}


class JsonFormatter(logging.Formatter):
    """`logging.StreamHandler().setFormatter(JsonFormatter(group="orders", member="a"))`.

    What is given here stands in every line, unless a record knows better.
    """

    def __init__(self, **always: str) -> None:
        super().__init__()
        self._always = always

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._always,
        }
        for name in ("event", "group", "member", "peer"):
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        line["message"] = record.getMessage()
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
