"""Real groups: the same protocol objects, between operating-system processes, over sockets.

    join        from a few words to a running member
    wishes      what it is asked, looked at before anything is opened
    living      memory, core and node of a member, begun and ended together
    group       what an application holds: send, receipts, deliveries
    outgoing    what it sends, bundled, and no more than others can take
    bundle      messages in a row as one message of the protocol
    node        the asyncio host of one member
    core        everything a member knows, as a pure object with inputs
    standing    how one's own bundles stand with the others
    holds       why a message is held

    config      a member as a TOML file describes it
    status      how a member is doing; watching serves it, metrics is the same for Prometheus
    telemetry   spans for OpenTelemetry, around a group
    logs        logs for machines

    memory      the journal and the core: how a killed member comes back
    inputs      the inputs of a core as records
    journal/    those records on disk

    link        the pure state of one pair of members: numbers, retained packets, resends
    peer        another member as seen from here
    connection  one TCP or TLS connection, and the end of a peer that breaks the rules
    frames      what travels on a socket: a length, and a msgpack array
    door        where a member listens, from before it knows who the others are
    discovery/  how members find each other
    keys        mutual TLS; certificates makes what it needs
    detector    who is thought to be down
    weather     what the emulated network does to a packet before its link gets it

A run of a whole group on this machine is made of these, one program per member:

    plan        what is to be run, how far it is, and how it ended
    control     the lines between the launcher and a member
    member      the program of one process
    child       a member's process, as its launcher sees it
    crew        all of them: they start, meet, suffer, come to rest and are dismissed
    faults/     what may go wrong between them, and the proxies that make it so
    launcher    runs a plan with a crew, and leaves one trace
    collect     the members' logs into that trace
    rest        what a member counts, and when a group is at rest
"""
