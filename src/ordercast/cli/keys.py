"""Make certificates for the members of a group, so that they can speak TLS to each other.

Run it again with other names to add members: ca.key signs them, and nothing is overwritten.

example:
  ordercast keys keys --group orders a b c
  ordercast keys keys --group orders d --days 90
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ordercast.runtime.keys import DAYS, KeyFiles, Made, make_group

__all__ = ["act", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="where the files are kept")
    parser.add_argument("names", nargs="+", metavar="NAME", help="the members to make keys for")
    parser.add_argument("--group", required=True, help="the name of their group")
    parser.add_argument(
        "--days", type=int, default=DAYS, metavar="N", help=f"valid for (default: {DAYS})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def act(options: argparse.Namespace) -> int:
    made = make_group(options.directory, options.group, options.names, days=options.days)
    print(json.dumps(_as_json(made)) if options.json else _as_text(made))
    return 0


def _as_json(made: Made) -> dict[str, object]:
    return {
        "group": made.group,
        "directory": str(made.directory),
        "new_authority": made.new_authority,
        "expires": made.expires.isoformat(timespec="seconds"),
        "members": {
            name: {kind: str(file) for kind, file in _files(made, name)._asdict().items()}
            for name in made.members
        },
        "written": [str(file) for file in made.files],
    }


def _as_text(made: Made) -> str:
    authority = f"the group's CA in {made.directory / 'ca.pem'}"
    lines = [
        f"group {made.group}: {'made' if made.new_authority else 'used'} {authority}",
        f"valid until {made.expires:%Y-%m-%d}; copy to each member's host these three files:",
    ]
    width = max(map(len, made.members))
    for name in made.members:
        ca, certificate, key = _files(made, name)
        lines.append(f"  {name:{width}}  {ca}  {certificate}  {key}")
    secret = made.directory / "ca.key"
    lines.append(
        f"Keep {secret} off these hosts, best offline: whoever has it can pose as any member. "
        "It is needed again only to add members."
    )
    return "\n".join(lines)


def _files(made: Made, name: str) -> KeyFiles:
    return KeyFiles.of(made.directory, name)
