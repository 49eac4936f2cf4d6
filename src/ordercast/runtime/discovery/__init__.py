"""How the members of a group find each other (the open problem that ends source text 004).

    address     where a member listens
    finder      the contract of every way to find the others
    static      a list that is known beforehand, in the program or in a TOML file
    registry    a directory that all members can write to
    asking      DNS names with several addresses, and any known member: who is there is asked
    assemble    announce, look until everyone is known, and say how far it is
    remembered  who they were, for a member that comes back
    peers       what a user may write for `peers=`

Finding is not trusting: whoever is found still has to show the certificate of its name.
"""

from ordercast.runtime.discovery.address import Address
from ordercast.runtime.discovery.asking import Answer, Ask, Dns, Resolve, Via
from ordercast.runtime.discovery.assemble import (
    Membership,
    Presence,
    assemble,
    looked,
    withdraw,
)
from ordercast.runtime.discovery.finder import DiscoveryError, Finder, check_reachable
from ordercast.runtime.discovery.peers import Peers, parse_peers, parse_text
from ordercast.runtime.discovery.registry import Registry
from ordercast.runtime.discovery.static import StaticList, from_toml

__all__ = [
    "Address",
    "Answer",
    "Ask",
    "DiscoveryError",
    "Dns",
    "Finder",
    "Membership",
    "Peers",
    "Presence",
    "Registry",
    "Resolve",
    "StaticList",
    "Via",
    "assemble",
    "check_reachable",
    "from_toml",
    "looked",
    "parse_peers",
    "parse_text",
    "withdraw",
]
