"""Faults between real processes, as a plan says.

kinds       what may go wrong, and a whole plan of it
grammar     plans as people write them
reader      word by word
conduct     makes it go wrong, at the time that the plan says
network     the ways between members, each through a proxy
cable       one connection through a proxy: delayed, stalled, broken
"""

from ordercast.runtime.faults.conduct import Happening, conduct
from ordercast.runtime.faults.grammar import GRAMMAR, parse_faults
from ordercast.runtime.faults.kinds import Faults
from ordercast.runtime.faults.network import Network, Parting

__all__ = ["GRAMMAR", "Faults", "Happening", "Network", "Parting", "conduct", "parse_faults"]
