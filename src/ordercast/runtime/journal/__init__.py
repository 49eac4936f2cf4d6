"""A member's memory on disk: what came in, in order, so that a killed member comes back as it was.

    segment     what a file of the journal looks like, read back with suspicion
    zeros       what was never written of one
    writer      one such file being written
    committer   group commit: a thread that writes and syncs while the loop goes on
    taken       how far the application has come, in a file that costs no system call to change
    ownership   one process at a time, and always the same member
    files       the segments of a directory, the newest of them written
    journal     all of these in one directory, which belongs to one process

A directory holds `0000000001.segment` and its successors, `taken` and `lock`, and perhaps a `spare`
to be written over. Each segment begins with a snapshot of the state before its first record; the
newest one is the state of the member.
Who the others are is kept beside them, in `members.json`, by `discovery.remembered`.
"""

from ordercast.runtime.journal.files import Recovered
from ordercast.runtime.journal.journal import KEEP_BYTES, SEGMENT_BYTES, Journal
from ordercast.runtime.journal.segment import Segment

__all__ = ["KEEP_BYTES", "SEGMENT_BYTES", "Journal", "Recovered", "Segment"]
