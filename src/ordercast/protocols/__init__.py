"""Pure state machines: something happens to them, and they return what should be done.

No clock, socket, randomness, logging or thread; so one object runs unchanged in the simulator,
on sockets and inside a Spark task.
"""
