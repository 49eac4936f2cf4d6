"""The page that shows a judgement: verdicts in words, and the runs as space-time diagrams."""

from ordercast.report.diagram import draw
from ordercast.report.page import Limits, render, write
from ordercast.report.parts import Focus, Part, slice_for, whole, window

__all__ = [
    "Focus",
    "Limits",
    "Part",
    "draw",
    "render",
    "slice_for",
    "whole",
    "window",
    "write",
]
