"""Ordered messaging between processes, with proof that the order held."""

__version__ = "0.1.0"
