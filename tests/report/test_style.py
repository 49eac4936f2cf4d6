"""Colours that can be read and told apart, in light and in dark."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

import ordercast.report
from ordercast.report.diagram import COLOURS

STYLE = (Path(ordercast.report.__file__).parent / "templates" / "style.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    for block in re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)[:2]
)


def channels(colour: str) -> list[float]:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def luminance(colour: str) -> float:
    red, green, blue = channels(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_as_wcag_asks(theme: dict[str, str]) -> None:
    words = ["ink", "soft", "holds", "violated", "unknown", *(f"o{i}" for i in range(COLOURS))]
    for name in words:
        assert contrast(theme[name], theme["page"]) >= 4.5, name
    for name in ("holds", "violated", "unknown"):
        assert contrast(theme[name], theme[f"{name}-wash"]) >= 4.5, name


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("blind", ["none", "protan", "deutan"])
def test_origins_look_different_to_most_eyes(theme: dict[str, str], blind: str) -> None:
    """Distance in linear light after Viénot's simulation of the missing cones."""
    seen = [_simulated(channels(theme[f"o{i}"]), blind) for i in range(4)]
    for one, other in combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 0.04


def _simulated(rgb: list[float], blind: str) -> list[float]:
    red, green, blue = rgb
    if blind == "protan":
        mixed = 0.1124 * red + 0.8876 * green
        return [mixed, mixed, 0.004 * red - 0.004 * green + blue]
    if blind == "deutan":
        mixed = 0.2928 * red + 0.7072 * green
        return [mixed, mixed, -0.0223 * red + 0.0223 * green + blue]
    return rgb


def test_dark_mode_changes_every_colour_but_adds_none() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert not [name for name in LIGHT if LIGHT[name] == DARK[name]]
