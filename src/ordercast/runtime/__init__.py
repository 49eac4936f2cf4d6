"""Real nodes: the same protocol objects, between operating-system processes, over sockets.

    frames      what travels on a socket: a length, and a msgpack array
    link        the pure state of one pair of members: numbers, retained packets, resends
    weather     what the emulated network does to a packet before its link gets it
    peer        another member as seen from here: the air, the link, the connection of now
    connection  one TCP connection, and the end of a peer that breaks the rules
    node        the host of one protocol stack
    rest        what a member counts, and when a group is at rest

A run of a whole group on this machine is made of these, one program per member:

    plan        what is to be run, how far it is, and how it ended
    control     the lines between the launcher and a member
    member      the program of one process
    child       a member's process, as its launcher sees it
    launcher    starts the group, waits for rest, ends everything, leaves one trace
    collect     the members' logs into that trace
"""
