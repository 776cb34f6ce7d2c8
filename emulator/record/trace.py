"""trace.py RECORDING: the recording (RECORDING.md) in the Chrome trace format, for ui.perfetto.dev or chrome://tracing.

Each cluster is a process; its warps, the copies in flight, the wgmmas of each warpgroup and the mbarriers are its
threads. A time unit, which viewers take for a microsecond, is one warp instruction of the cluster, or a clock under
EMULATOR_CLOCK. Everything that lasts is a complete event ("X"): a begin without an end cannot be written."""
import json
import sys

from recording import lines_of

COPIES, TENSOR = 100000, 200000  # their first rows


class Trace:
    """Goes through the lines of a recording and prints events."""

    def __init__(self):
        self.separator, self.process = "", 0
        self.unit = "warp instruction of the cluster"
        self.files, self.places, self.kernels = {}, {}, {}

    def line(self, kind, name, thread, **fields):
        print(self.separator + json.dumps({"ph": kind, "name": name, "pid": self.process, "tid": thread, **fields}), end="")
        self.separator = ",\n"

    def lasting(self, thread, category, name, begin, end):
        self.line("X", name, thread, cat=category, ts=begin, dur=max(0, end - begin))

    def instant(self, thread, category, name, time):
        self.line("i", name, thread, cat=category, ts=time, s="t")

    def row(self, thread, name):
        if thread not in self.rows:
            self.rows.add(thread)
            self.line("M", "thread_name", thread, args={"name": name})
        return thread

    def warp_row(self, warp):
        return self.row(warp + 1, f"{self.block_of(warp)}warp {warp % self.per_block}")

    def block_of(self, warp):
        return f"block {warp // self.per_block} " if self.blocks > 1 else ""

    # A row can show one thing at a time: while some lanes wait and others go on, it shows those that go on.
    def begin(self, category, warp, name, time):
        self.end("step", warp, time)
        self.end("wait", warp, time)
        self.open[category][warp] = (name, time)

    def end(self, category, warp, time):
        if warp in self.open[category]:
            self.lasting(self.warp_row(warp), category, *self.open[category].pop(warp), time)

    # Copies overlap: each gets the first row that is free.
    def begin_copy(self, number, kind, time):
        busy = {lane for lane, *_ in self.copies.values()}
        lane = next(lane for lane in range(len(busy) + 1) if lane not in busy)
        self.copies[number] = (lane, f"{kind} {number}", time)
        self.row(COPIES + lane, f"copy engine {lane}")

    def end_copy(self, number, time):
        lane, name, begin = self.copies.pop(number)
        self.lasting(COPIES + lane, "copy", name, begin, time)

    # The wgmmas of a warpgroup are one bar from the first that is issued until none is under way: dozens of them are, and
    # each warp issues its share by itself.
    def begin_wgmma(self, number, warp, time):
        group = warp % self.per_block // 4
        row = self.row(TENSOR + warp // self.per_block * 64 + group, f"{self.block_of(warp)}wgmma, group {group}")
        self.wgmmas[number] = row
        self.under_way.setdefault(row, (time, set()))[1].add(number)

    def end_wgmma(self, number, time):
        row = self.wgmmas.pop(number)
        begin, numbers = self.under_way[row]
        numbers.remove(number)
        if not numbers:
            del self.under_way[row]
            self.lasting(row, "wgmma", "wgmma", begin, time)

    def begin_cluster(self, value):
        self.process += 1
        self.time, self.per_block, self.blocks = 0, value["warps_per_block"], len(value["blocks"])
        self.rows, self.open, self.copies, self.wgmmas, self.under_way = set(), {"step": {}, "wait": {}}, {}, {}, {}
        name = f"launch {value['launch']}: {self.kernels[value['launch']]}, cluster {value['cluster']}"
        self.line("M", "process_name", 0, args={"name": name})

    def end_cluster(self, time):
        for category, warps in self.open.items():
            for warp in list(warps):
                self.end(category, warp, time)
        for number in list(self.copies):
            self.end_copy(number, time)
        for number in list(self.wgmmas):
            self.end_wgmma(number, time)

    def define(self, value):
        if value.get("clock") == "h200":
            self.unit = "clock of a modelled H200"
        elif "path" in value:
            self.files[value["file"]] = value["path"].rpartition("/")[2]
        elif "place" in value:
            file = self.files.get(value["file"])
            self.places[value["place"]] = f"{file}:{value['line']}" if file else value["text"]
        elif "kernel" in value:
            self.kernels[value["launch"]] = value["kernel"]
        elif "warps_per_block" in value:
            if self.process:
                self.end_cluster(self.time)
            self.begin_cluster(value)
        elif "end" in value:
            self.end_cluster(value["end"])

    def event(self, kind, time, subject, *rest):
        """subject: mostly a warp, else a copy, a wgmma or an address."""
        self.time = time
        if kind == "step":
            self.begin("step", subject, self.places.get(rest[1], "?"), time)
        elif kind == "wait":
            self.begin("wait", subject, f"waits at {self.places.get(rest[1], '?')}", time)
        elif kind in ("woke", "exit"):
            self.end("wait" if kind == "woke" else "step", subject, time)
        elif kind in ("fence", "commit"):
            self.instant(self.warp_row(subject), kind, f"{kind} at {self.places.get(rest[1], '?')}", time)
        elif kind == "copy":
            self.begin_copy(subject, rest[3], time)
        elif kind == "landed" and subject in self.copies:
            self.end_copy(subject, time)
        elif kind == "wgmma":
            self.begin_wgmma(subject, rest[0], time)
        elif kind == "wgmma_done" and subject in self.wgmmas:
            self.end_wgmma(subject, time)
        elif kind == "mbarrier":
            name = f"mbarrier {f'{subject >> 24}:' if self.blocks > 1 else ''}{subject & 0xffffff}"
            self.line("C", f"{name} phase", 0, ts=time, args={"phase": rest[1]})
            self.line("C", f"{name} pending", 0, ts=time, args={"arrivals": rest[2], "bytes": rest[4]})
        elif kind in ("finding", "fault"):
            row = self.row(0, "the cluster") if subject < 0 else self.warp_row(subject)
            self.instant(row, kind, f"{kind} {rest[2]}", time)


def main(path):
    trace = Trace()
    print('{"displayTimeUnit": "ns", "traceEvents": [')
    try:
        for value in lines_of(path, without=("bytes", "shared")):
            if isinstance(value, list):
                trace.event(*value)
            else:
                trace.define(value)
    except SystemExit as cut:
        print(f"{cut}; the trace ends there", file=sys.stderr)
    if trace.process:
        trace.end_cluster(trace.time)
    print('\n], "otherData": {"time": "a microsecond stands for one ' + trace.unit + '"}}')


main(sys.argv[1])
