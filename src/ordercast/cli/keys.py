"""Make certificates for the members of a group, so that they can speak TLS to each other.

Run it again with other names to add members: ca.key signs them, and nothing is overwritten.

With --revoke, certificates that were made before are not believed any more.

example:
  ordercast keys keys --group orders a b c
  ordercast keys keys --group orders d --days 90
  ordercast keys keys --group orders --revoke c
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import msgspec

from ordercast.errors import UsageError
from ordercast.runtime.keys import DAYS, KeyFiles, Made, make_group, revoke_members

__all__ = ["act", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="where the files are kept")
    parser.add_argument("names", nargs="+", metavar="NAME", help="the members it is about")
    parser.add_argument("--group", required=True, help="the name of their group")
    parser.add_argument(
        "--days", type=int, metavar="N", help=f"certificates are valid for (default: {DAYS})"
    )
    parser.add_argument(
        "--revoke", action="store_true", help="revoke the members' certificates instead"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def act(options: argparse.Namespace) -> int:
    if options.revoke:
        return _revoke(options)
    days = DAYS if options.days is None else options.days
    made = make_group(options.directory, options.group, options.names, days=days)
    print(json.dumps(_as_json(made)) if options.json else _as_text(made))
    return 0


def _revoke(options: argparse.Namespace) -> int:
    if options.days is not None:
        raise UsageError("--days is for new certificates: leave it out with --revoke")
    done = revoke_members(options.directory, options.group, options.names)
    if options.json:
        print(msgspec.json.encode(done, enc_hook=str).decode())
    else:
        print(
            f"group {done.group}: revoked {', '.join(done.members)}; {done.total} on the list\n"
            f"Copy {done.file} to the hosts of all members, beside ca.pem: within seconds they "
            "shut out whoever is on it."
        )
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
        "It is needed again only to add members or to revoke one."
    )
    return "\n".join(lines)


def _files(made: Made, name: str) -> KeyFiles:
    return KeyFiles.of(made.directory, name)
