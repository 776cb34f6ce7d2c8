#!/usr/bin/env python3
"""check_recording.py FILE [mistaken]: reads a recording line by line as RECORDING.md describes it and checks that
it hangs together: definitions before use, time that never decreases, copies that land once, waits that
end once, barriers whose phases only grow, and bytes that give the final shared memory exactly.

mistaken: the program reads what has not landed, so its bytes may be undefined.
Prints one line of totals; a contradiction is printed with its line number and ends with exit code 1."""
import base64
import json
import os
import re
import sys

with open(os.path.join(os.path.dirname(__file__), "../record/RECORDING.md"), encoding="utf-8") as page:
    FORMAT = page.read()
FIELDS = {kind: fields.split(", ") for kind, fields in re.findall(r'\["(\w+)", (t\b[\w, ]*)\]', FORMAT)}


class Cluster:
    def __init__(self, line):
        blocks = len(line["blocks"])
        self.memory = [bytearray([line["initial"]]) * line["shared_bytes"] for _ in range(blocks)]
        self.time = 0
        self.events = 0
        self.in_flight = {}  # copy -> [its warp, what kind it is]
        self.copies = 0
        self.waiting = {}
        self.phases = {}
        self.poison = 0

    def event(self, event, places):
        kind, time = event[0], event[1]
        assert kind in FIELDS, f"unknown event {kind}"
        assert len(event) == 1 + len(FIELDS[kind]), f"{kind} does not have the fields of RECORDING.md: {FIELDS[kind]}"
        assert time >= self.time, f"time goes back from {self.time} to {time}"
        self.time = time
        self.events += 1
        if "place" in FIELDS[kind]:
            place = event[1 + FIELDS[kind].index("place")]
            assert place == -1 or place in places, f"place {place} is not defined"
        getattr(self, kind, lambda event: None)(event)

    def copy(self, event):
        assert event[2] == self.copies, "copies are not numbered in order"
        self.copies += 1
        self.in_flight[event[2]] = [event[3], event[6]]

    def landed(self, event):
        assert event[2] in self.in_flight, f"copy {event[2]} lands, but is not in flight"
        warp, kind = self.in_flight.pop(event[2])
        early = [copy for copy in self.in_flight if copy < event[2] and self.in_flight[copy] == [warp, "cp.async"]]
        assert not (kind.startswith("arrival") and early), f"an arrival comes before the copies {early} that it reports"

    def wait(self, event):
        warp, mask = event[2], event[3]
        assert not self.waiting.get(warp, 0) & mask, f"lanes of warp {warp} wait twice"
        self.waiting[warp] = self.waiting.get(warp, 0) | mask

    def woke(self, event):
        warp, mask = event[2], event[3]
        assert self.waiting.get(warp, 0) & mask == mask, f"lanes of warp {warp} did not wait"
        self.waiting[warp] &= ~mask

    def observed(self, event):
        assert event[5] in self.phases, "a wait has an answer from an mbarrier that was never initialised"
        assert -1 <= event[6] < self.phases[event[5]], "a wait has seen a phase that is not complete"

    def mbarrier(self, event):
        address, why, phase = event[2], event[3], event[4]
        if why == "init":
            assert phase == 0, "a new barrier has completed no phase"
        else:
            assert phase - self.phases.get(address, 0) in (0, 1), "phases come one by one"
        self.phases[address] = phase

    def bytes(self, event):
        author, address, data = event[2], event[3], base64.b64decode(event[4])
        known = author in ("mbarrier", "poison") or author[0] in "wc" and author[1:].isdigit()
        assert known, f"unknown author {author}"
        self.poison += author == "poison"
        offset = address & 0xFFFFFF
        memory = self.memory[address >> 24]
        assert offset + len(data) <= len(memory), "bytes outside of shared memory"
        memory[offset:offset + len(data)] = data

    def end(self, line, failed, mistaken):
        assert line["events"] == self.events, f"{line['events']} events announced, {self.events} found"
        for rank, final in enumerate(line["shared"]):
            final = base64.b64decode(final)
            for i, (have, want) in enumerate(zip(self.memory[rank], final)):
                assert have == want, f"byte {i} of block {rank}: {have} recorded, {want} at the end"
        assert failed or not self.in_flight, f"copies in flight at the end: {list(self.in_flight)}"
        assert failed or not any(self.waiting.values()), f"warps still wait: {self.waiting}"
        assert failed or mistaken or not self.poison, "undefined bytes in a cluster that did not fail"


def main(path, mistaken=""):
    places, totals, cluster, failed = set(), {"clusters": 0, "events": 0}, None, False
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            line = json.loads(text)
            try:
                if isinstance(line, dict):
                    unknown = [name for name in line if f'"{name}": ' not in FORMAT]
                    assert not unknown, f"RECORDING.md does not name {unknown}"
                if number == 1:
                    assert line["recording"] == 1, "the first line names version 1"
                elif isinstance(line, list):
                    failed |= line[0] == "fault"
                    cluster.event(line, places)
                elif "place" in line:
                    places.add(line["place"])
                elif "cluster" in line and "blocks" in line:
                    cluster, failed = Cluster(line), False
                elif "end" in line:
                    cluster.end(line, failed, mistaken == "mistaken")
                    totals["clusters"] += 1
                    totals["events"] += cluster.events
            except AssertionError as error:
                print(f"{path}:{number}: {error}")
                return 1
    print(f"recording: {totals['clusters']} clusters, {totals['events']} events, all consistent")
    return 0


sys.exit(main(*sys.argv[1:]))
