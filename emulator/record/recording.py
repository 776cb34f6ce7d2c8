"""recording.py: reads a recording of the emulator (emulator/record/RECORDING.md)."""
import base64
import json


class Cluster:
    """One recorded cluster: its definition, its launch, and its events in order."""

    def __init__(self, definition, launch):
        self.definition = definition
        self.launch = launch
        self.variables = {}
        self.members = launch["members"]
        self.events = []
        self.end = None

    def copies(self):
        """The asynchronous copies: dictionaries with the moments at which they were issued and landed,
        as indices of events."""
        copies = []
        for n, event in enumerate(self.events):
            if event[0] == "copy":
                copies.append({"number": event[2], "warp": event[3], "kind": event[6], "bytes": event[7],
                               "barrier": event[8], "ranks": event[9], "reads": event[10],
                               "writes": event[11], "tensor": event[12], "issued": n, "source": None,
                               "landed": None})
            elif event[0] in ("source", "landed"):
                copies[event[2]][event[0]] = n
        return copies

    def writer_of(self, address):
        """The author of the last write to a byte, such as "c0"; None: never written."""
        author = None
        for event in self.events:
            if event[0] == "bytes":
                length = len(base64.b64decode(event[4]))
                if event[3] <= address < event[3] + length:
                    author = event[2]
        return author


def lines_of(path, without=()):
    """without: kinds of events that are not needed."""
    left_out = tuple(f'["{kind}",' for kind in without)
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if left_out and text.startswith(left_out):
                continue
            try:
                yield json.loads(text)
            except json.JSONDecodeError:
                raise SystemExit(f"{path} is cut off in line {number}: it was not written or copied to its end")


class Recording:
    def __init__(self, path, without=()):
        self.files, self.places, self.launches, self.clusters = {}, {}, {}, []
        self.stopped = None
        for value in lines_of(path, without):
            self.add(value)

    def add(self, line):
        if isinstance(line, list):
            self.clusters[-1].events.append(line)
        elif "place" in line:
            self.places[line["place"]] = line
        elif "path" in line:
            self.files[line["file"]] = line
        elif "kernel" in line:
            self.launches[line["launch"]] = {**line, "members": []}
        elif "blocks" in line and "cluster" in line:
            self.clusters.append(Cluster(line, self.launches[line["launch"]]))
        elif "variable" in line:
            self.clusters[-1].variables[line["variable"]] = line
        elif "member" in line:
            self.launches[line["launch"]]["members"].append(line)
        elif "end" in line:
            self.clusters[-1].end = line
        elif "stopped" in line:
            self.stopped = line["stopped"]


def swizzled(span, address):
    """Where the copy engine puts the byte that an unswizzled tile has at this address, and back."""
    bits = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}[span]
    return address ^ (address >> 3 & bits)
