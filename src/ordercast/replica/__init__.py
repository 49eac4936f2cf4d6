"""A program's state on several machines, in step by total order, whoever crashes, comes or goes.

    rolls       who the members are, generation by generation, and what changes that
    commands    what members send each other: commands, and changes of the roll
    checkpoint  the state that all have come to, as bytes
    keeping     the generation, its state and its journal on disk
    calling     how a newcomer gets in: knock, and fetch the state
    pending     commands that were given here and are not carried out yet
    machine     the program's state, and what is carried out on it
    generation  a member in one generation: a group that does not change
    hosting     what is answered at the door: who the members are, the state
    seeking     where the group is by now, and how to get in
    worker      what it does in a generation: send, carry out, save, propose
    lookout     what looks after the others meanwhile
    life        what a replica does: from generation to generation
    replica     what the program holds in its hands
    replicate   `ordercast.replicate`

A generation is a group of its own, over `total_consensus`. A change of its members is a message in
its order, and the last one that counts: everyone stops behind it at the same place and goes on in
the next generation, so no two generations ever decide anything side by side (on this way and
others: Lamport, Malkhi and Zhou, “Reconfiguring a State Machine”, 2010). Whoever was away for that
fetches the state that the others have come to, as newcomers do.
"""
