"""A small log of every format that is in order, and one that is not, with the verdicts it must get.

All tell the same two stories. Good: a asks, b has heard it and answers, c hears both in that order.
Broken: c hears the answer first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordercast.trace.importers import Options


@dataclass(frozen=True)
class Sample:
    files: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ("a", "b", "c")
    complete: bool = True

    def write(self, directory: Path) -> list[Path]:
        directory.mkdir()
        for name, text in self.files.items():
            (directory / name).write_text(text)
        return [directory / name for name in self.files]

    def chosen(self) -> Options:
        return Options(**self.options)


HOLDS = {"no_duplication": "holds", "no_creation": "holds", "fifo": "holds", "causal": "holds"}
BROKEN = HOLDS | {"causal": "violated"}

NAMED = {"send": r"sends (?<message>\w+)", "receive": r"hears (?<message>\w+)"}
SHIVIZ_GOOD = """\
a {"a":1}
sends question
b {"a":1, "b":1}
hears question
b {"a":1, "b":2}
sends answer
c {"a":1, "c":1}
hears question
c {"a":1, "b":2, "c":2}
hears answer
"""
SHIVIZ_BROKEN = SHIVIZ_GOOD.replace(
    'c {"a":1, "c":1}\nhears question\nc {"a":1, "b":2, "c":2}\nhears answer',
    'c {"a":1, "b":2, "c":1}\nhears answer\nc {"a":1, "b":2, "c":2}\nhears question',
)

DSLAB_GOOD = """\
{"ProcessStarted":{"time":0.0,"node":"n1","proc":"a"}}
{"ProcessStarted":{"time":0.0,"node":"n2","proc":"b"}}
{"ProcessStarted":{"time":0.0,"node":"n3","proc":"c"}}
{"LocalMessageReceived":{"time":0.0,"msg_id":"n1-a-0","node":"n1","proc":"a","msg":{"tip":"ASK","data":"\\"?\\""}}}
{"MessageSent":{"time":0.0,"msg_id":"0","src_node":"n1","src_proc":"a","dst_node":"n3","dst_proc":"c","msg":{"tip":"ASK","data":"\\"?\\""}}}
{"MessageSent":{"time":0.0,"msg_id":"1","src_node":"n1","src_proc":"a","dst_node":"n2","dst_proc":"b","msg":{"tip":"ASK","data":"\\"?\\""}}}
{"MessageReceived":{"time":1.0,"msg_id":"1"}}
{"MessageSent":{"time":1.0,"msg_id":"2","src_node":"n2","src_proc":"b","dst_node":"n3","dst_proc":"c","msg":{"tip":"ASK","data":"\\"!\\""}}}
{"MessageReceived":{"time":2.0,"msg_id":"0"}}
{"MessageReceived":{"time":3.0,"msg_id":"2"}}
{"NodeCrashed":{"time":4.0,"node":"n1"}}
"""
DSLAB_BROKEN = DSLAB_GOOD.replace('2.0,"msg_id":"0"', '2.0,"msg_id":"2"').replace(
    '3.0,"msg_id":"2"', '3.0,"msg_id":"0"'
)

BROADCAST_GOOD = {
    "1.output": "b 1\nd 1 1\nd 2 1\n",
    "2.output": "d 1 1\nb 1\nd 2 1\n",
    "3.output": "d 1 1\nd 2 1\n",
}
BROADCAST_BROKEN = BROADCAST_GOOD | {"3.output": "d 2 1\nd 1 1\n"}


def span(process: str, id: str, kind: int, start: int, *links: str) -> str:
    linked = ",".join(f'{{"traceId":"{t:0>32}","spanId":"{t:0>16}"}}' for t in links)
    return (
        '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.instance.id","value":'
        f'{{"stringValue":"{process}"}}}}]}},"scopeSpans":[{{"spans":[{{"traceId":"{id:0>32}",'
        f'"spanId":"{id:0>16}","name":"m","kind":{kind},"startTimeUnixNano":"{start}000",'
        f'"links":[{linked}]}}]}}]}}]}}\n'
    )


OTLP_GOOD = (
    span("a", "1", 4, 10)
    + span("b", "2", 5, 20, "1")
    + span("b", "3", 4, 30)
    + span("c", "4", 5, 40, "1")
    + span("c", "5", 5, 50, "3")
)
OTLP_BROKEN = OTLP_GOOD.replace('"40000"', '"60000"')

JEPSEN_GOOD = """\
{:type :invoke, :f :broadcast, :value 1, :process 0, :time 10, :index 0}
{:type :ok, :f :broadcast, :value 1, :process 0, :time 20, :index 1}
{:type :invoke, :f :read, :value nil, :process 1, :time 30, :index 2}
{:type :ok, :f :read, :value [1], :process 1, :time 40, :index 3}
{:type :invoke, :f :broadcast, :value 2, :process 1, :time 50, :index 4}
{:type :info, :f :start, :value nil, :process :nemesis, :time 55, :index 5}
{:type :ok, :f :broadcast, :value 2, :process 1, :time 60, :index 6}
{:type :invoke, :f :read, :value nil, :process 2, :time 70, :index 7}
{:type :ok, :f :read, :value [2 1], :process 2, :time 80, :index 8}
"""
JEPSEN_BROKEN = JEPSEN_GOOD.replace(":value [2 1]", ":value [2]")


def journal(kind: str, id: int, source: str, target: str, body: str) -> str:
    message = f'{{"id":{id},"src":"{source}","dest":"{target}","body":{{{body}}}}}'
    return f'{{"type":"{kind}","time":{id}000,"message":{message}}}\n'


ASK, TELL = '"type":"broadcast","message":1', '"type":"broadcast","message":2'
MAELSTROM_GOOD = (
    journal("send", 1, "n1", "n3", ASK)
    + journal("send", 2, "n1", "n2", ASK)
    + journal("recv", 2, "n1", "n2", ASK)
    + journal("send", 3, "n2", "n3", TELL)
    + journal("recv", 1, "n1", "n3", ASK)
    + journal("recv", 3, "n2", "n3", TELL)
)
MAELSTROM_BROKEN = "".join(MAELSTROM_GOOD.splitlines(True)[i] for i in (0, 1, 2, 3, 5, 4))

TABLE_GOOD = """\
host,ts,type,id
a,2026-01-01T00:00:00.1,produce,question
b,2026-01-01T00:00:00.2,consume,question
b,2026-01-01T00:00:00.3,produce,answer
c,2026-01-01T00:00:00.4,consume,question
c,2026-01-01T00:00:00.5,consume,answer
"""
TABLE_BROKEN = TABLE_GOOD.replace("c,2026-01-01T00:00:00.4", "c,2026-01-01T00:00:00.6")
TABLE = {
    "map": {"process": "host", "time": "ts", "kind": "type", "message": "id"},
    "kinds": {"produce": "send", "consume": "deliver"},
}

GOOD = {
    "shiviz": Sample({"a.log": SHIVIZ_GOOD}, NAMED, HOLDS),
    "dslab": Sample({"a.log": DSLAB_GOOD}, {}, HOLDS),
    "broadcast": Sample(BROADCAST_GOOD, {"quiesced": True}, HOLDS, ("1", "2", "3")),
    "otlp": Sample({"a.jsonl": OTLP_GOOD}, {}, HOLDS),
    "jepsen": Sample({"history.edn": JEPSEN_GOOD}, {}, HOLDS, ("c0", "c1", "c2")),
    "maelstrom": Sample({"a.jsonl": MAELSTROM_GOOD}, {}, HOLDS, ("n1", "n2", "n3")),
    "table": Sample({"a.csv": TABLE_GOOD}, TABLE, HOLDS),
}
VIOLATED = {
    "shiviz": Sample({"a.log": SHIVIZ_BROKEN}, NAMED, BROKEN),
    "dslab": Sample({"a.log": DSLAB_BROKEN}, {}, BROKEN),
    "broadcast": Sample(BROADCAST_BROKEN, {"quiesced": True}, BROKEN, ("1", "2", "3")),
    "otlp": Sample({"a.jsonl": OTLP_BROKEN}, {}, BROKEN),
    "jepsen": Sample({"history.edn": JEPSEN_BROKEN}, {}, BROKEN, ("c0", "c1", "c2")),
    "maelstrom": Sample({"a.jsonl": MAELSTROM_BROKEN}, {}, BROKEN, ("n1", "n2", "n3")),
    "table": Sample({"a.csv": TABLE_BROKEN}, TABLE, BROKEN),
}
