"""How far a directory was read, and what there is to read between two such offsets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.described import digest
from ordercast.pipeline.streaming.source_files import (
    Place,
    Stretch,
    followed,
    is_at_end,
    reach,
    read_head,
)
from ordercast.trace.directory import MANIFEST, read_manifests
from ordercast.trace.manifest import Manifest

__all__ = ["Directory", "Reach"]


class Reach(NamedTuple):
    """How far a directory was read."""

    files: dict[str, Place]
    """By name, as seen from the directory."""
    told: dict[str, str]
    """By run, the digest of the manifest that was told last."""

    @classmethod
    def of(cls, offset: dict[str, Any]) -> Reach:
        files = msgspec.convert(offset.get("files", {}), dict[str, Place])
        return cls(files, dict(offset.get("told", {})))

    def offset(self) -> dict[str, Any]:
        return {"files": msgspec.to_builtins(self.files), "told": self.told}


class Directory:
    """What there is to read, between two offsets. `ended`: nothing more will be written."""

    def __init__(self, path: Path, *, ended: bool = False) -> None:
        self._path = path
        self._ended = ended
        self._lines: dict[str, str | None] = {}
        """By log, the manifest's line in its head."""

    def reach(self, start: Reach, most_bytes: int) -> Reach:
        """As far as can be read now; each file gets its share of the bytes."""
        manifests = self._manifests()  # before the sizes: what it says of the end is true of them
        files = followed(self._path)
        share = max(most_bytes // max(len(files), 1), 1)
        places = dict(start.files)
        for file in files:
            name = self._name(file)
            before = places.get(name, Place())
            places[name] = reach(file, before, most_bytes=share, ended=self._ended)
        told = {one.run: digest(one) for one in manifests}
        later = [one for one in manifests if start.told.get(one.run) != told[one.run]]
        if later and not self._at_end(files, places):
            told |= {one.run: digest(_going_on(one)) for one in later}
        return Reach(places, start.told | told)

    def _at_end(self, files: list[Path], places: dict[str, Place]) -> bool:
        """Where nothing has come yet, everything may."""
        return bool(places) and all(is_at_end(file, places[self._name(file)]) for file in files)

    def stretches(self, start: Reach, end: Reach) -> list[Stretch]:
        found = []
        for name, place in end.files.items():
            before = start.files.get(name, Place())
            if place.at > before.at:
                file = self._path if self._path.is_file() else self._path / name
                found.append(Stretch(str(file), before, place))
        return found

    def manifests(self, start: Reach, end: Reach) -> list[tuple[str, str]]:
        """Runs, and the lines of their manifests that are new."""
        found = []
        for manifest in self._manifests():
            told = end.told.get(manifest.run)
            if told is None or told == start.told.get(manifest.run):
                continue
            if digest(manifest) != told:  # its time has not come
                manifest = _going_on(manifest)
            found.append((manifest.run, manifest.to_json().decode()))
        return found

    def _manifests(self) -> list[Manifest]:
        """What is known of the runs now: from the heads of logs, and from the trace's own file."""
        found: dict[str, Manifest] = {}
        for file in followed(self._path):
            if file.suffix not in (".jsonl", ".parquet"):
                name = self._name(file)
                if name not in self._lines:
                    self._lines[name] = _line_of(file)
                if (line := self._lines[name]) is not None:
                    manifest = Manifest.from_json(line, where=str(file))
                    before = found.get(manifest.run, manifest)
                    complete = manifest.complete and before.complete
                    found[manifest.run] = replace(manifest, complete=complete)
        try:
            found |= {manifest.run: manifest for manifest in read_manifests(self._path)}
        except TraceError:
            if self._ended or not _is_being_written(self._path / MANIFEST):
                raise
        return list(found.values())

    def _name(self, file: Path) -> str:
        return file.name if file == self._path else str(file.relative_to(self._path))


def _going_on(manifest: Manifest) -> Manifest:
    """As far as it can be told before everything was read."""
    return replace(manifest, quiesced=False)


def _is_being_written(manifest: Path) -> bool:
    return manifest.is_file() and not manifest.read_bytes().endswith(b"\n")


def _line_of(file: Path) -> str | None:
    try:
        return read_head(file).manifest
    except FileNotFoundError:
        return None
