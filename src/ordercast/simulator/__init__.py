"""A deterministic world of virtual time, seeded network and faults. Same seed, same bytes.

from ordercast.oracle import told
from ordercast.simulator import Network, Plan, Traffic, record

plan = Plan(size=3, seed=7, network=Network(loss=0.1), traffic=Traffic(messages=4))
trace = record(plan, order="causal", reliability="uniform")
print(*told(trace), sep="\\n")

plan        what a run is to be: the network's habits, the faults, the traffic
faults      the same, as people write it
run         from a plan to its events
recording   to a trace in memory
scenario    stories that are played packet by packet
explore     every interleaving of a small world
"""

from ordercast.simulator.faults import parse_faults
from ordercast.simulator.plan import Crash, Network, Partition, Plan, Traffic
from ordercast.simulator.recording import record
from ordercast.simulator.run import Ending, simulate
from ordercast.simulator.scenario import Scenario

__all__ = [
    "Crash",
    "Ending",
    "Network",
    "Partition",
    "Plan",
    "Scenario",
    "Traffic",
    "parse_faults",
    "record",
    "simulate",
]
