"""The sorting, numbering and joining of `store.py`, in SQL."""

from __future__ import annotations

__all__ = [
    "ADDRESS",
    "ADOPT",
    "EVENTS",
    "FORGET_REPEATED",
    "IDS",
    "INDEX_SENDS",
    "INDEX_SPANS",
    "INSERT",
    "NEW_IDS",
    "NOWHERE",
    "NUMBER",
    "NUMBER_ORPHANS",
    "ORPHANS_OF_NOBODY",
    "PLACE",
    "PLACED",
    "SCHEMA",
    "SECOND_SENDS",
    "TOLD_OTHERWISE",
]

SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
PRAGMA cache_size = -32768;
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY, run INT, process INT, kind TEXT, file INT, line INT, message TEXT,
    place INT, origin INT, number INT, destinations TEXT, time_us INT, bytes INT, finer INT,
    span TEXT, content INT, link INT);
CREATE TABLE processes (id INTEGER PRIMARY KEY, of_run INT, position INT);
CREATE TABLE messages (
    run INT, message TEXT, origin INT, own INT, number INT, PRIMARY KEY (run, message))
    WITHOUT ROWID;
BEGIN;
"""

INSERT = "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INDEX_SENDS = "CREATE INDEX sent ON rows (run, message) WHERE kind = 'send'"

# What is told of a span first counts.
INDEX_SPANS = "CREATE INDEX told ON rows (run, span) WHERE span IS NOT NULL"
TOLD_OTHERWISE = """
SELECT seq, file, line, span, link FROM rows WHERE span IS NOT NULL AND content != (
    SELECT content FROM rows f WHERE f.run = rows.run AND f.span = rows.span ORDER BY seq LIMIT 1)
ORDER BY seq
"""
FORGET_REPEATED = """
DELETE FROM rows WHERE seq IN (
    SELECT r.seq FROM rows r JOIN rows f
        ON f.run = r.run AND f.span = r.span AND f.link = r.link AND f.seq < r.seq
    WHERE r.span IS NOT NULL)
RETURNING link
"""

SECOND_SENDS = """
SELECT seq, file, line, message FROM rows WHERE kind = 'send' AND seq > (
    SELECT min(seq) FROM rows s
    WHERE s.kind = 'send' AND s.run = rows.run AND s.message = rows.message)
ORDER BY seq
"""

# A record without a process happened where its message was sent to.
PLACE = """
UPDATE rows SET process = (
    SELECT json_extract(s.destinations, '$[0]') FROM rows s
    WHERE s.kind = 'send' AND s.run = rows.run AND s.message = rows.message)
WHERE process IS NULL
"""
PLACED = "SELECT DISTINCT process FROM rows WHERE process IS NOT NULL"
NOWHERE = "SELECT seq, file, line, message FROM rows WHERE process IS NULL ORDER BY seq"

_ORPHAN = """
kind IN ('receive', 'deliver') AND NOT EXISTS (
    SELECT 1 FROM rows s WHERE s.kind = 'send' AND s.run = rows.run AND s.message = rows.message)
"""
ORPHANS_OF_NOBODY = f"SELECT DISTINCT run FROM rows WHERE origin IS NULL AND {_ORPHAN}"  # noqa: S608
ADOPT = f"UPDATE rows SET origin = ? WHERE run = ? AND origin IS NULL AND {_ORPHAN}"  # noqa: S608

NUMBER = """
INSERT INTO messages SELECT run, message, process, number,
    COALESCE(number, row_number() OVER (PARTITION BY run, process ORDER BY place, finer, seq))
FROM rows WHERE kind = 'send'
"""
# Behind those of the same origin that are known to be sent.
NUMBER_ORPHANS = f"""
INSERT INTO messages
SELECT o.run, o.message, o.origin, o.number, COALESCE(o.number, o.nth + COALESCE(h.highest, 0))
FROM (
    SELECT run, message, min(origin) AS origin, min(number) AS number,
        row_number() OVER (PARTITION BY run, min(origin) ORDER BY min(seq)) AS nth
    FROM rows WHERE {_ORPHAN} GROUP BY run, message) o
LEFT JOIN (
    SELECT run, origin, max(number) AS highest FROM messages GROUP BY run, origin) h
    ON h.run = o.run AND h.origin = o.origin
"""  # noqa: S608

ADDRESS = """
CREATE TABLE receivers (
    run INT, message TEXT, processes TEXT, PRIMARY KEY (run, message)) WITHOUT ROWID;
INSERT INTO receivers SELECT run, message, json_group_array(DISTINCT process)
FROM rows WHERE kind IN ('receive', 'deliver') GROUP BY run, message;
"""

EVENTS = """
SELECT r.run, p.position, r.kind, m.origin, m.number,
    CASE WHEN r.kind = 'send' THEN COALESCE(r.destinations, g.processes, '[]') END,
    r.destinations IS NOT NULL, r.time_us, r.bytes, r.place
FROM rows r JOIN processes p ON p.id = r.process
    LEFT JOIN messages m ON m.run = r.run AND m.message = r.message
    LEFT JOIN receivers g ON r.kind = 'send' AND g.run = r.run AND g.message = r.message
ORDER BY p.of_run, p.position, r.place, r.finer, r.seq
"""

IDS = """
SELECT m.run, p.position, m.number, m.message FROM messages m
    JOIN processes p ON p.id = m.origin
ORDER BY 1, 2, 3
"""
NEW_IDS = "SELECT count(*) FROM messages WHERE own IS NULL"
