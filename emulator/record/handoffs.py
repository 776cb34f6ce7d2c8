"""handoffs.py RECORDING: who hands what to whom in shared memory: for each buffer who fills it, what says that it is
full, who reads it and what frees it; for each mbarrier who arrives, which bytes it counts and who waits.

Launches of one kernel are added up. Elements of an array, and parts without a name that are used in the same way,
share an entry."""
import os
import re
import sys
from bisect import bisect_left, bisect_right
from collections import namedtuple

from recording import Recording

OFFSET = 0xffffff  # of a shared address; above it is the rank of the block
BARRIER_BYTES = 8
ALL_LANES = 0xffffffff
MOST_STUCK = 3  # waits that are listed
FAR = " from another block"
LONG_NAME = 16  # of a file: longer ones are numbered in the head, if there are several
MOST_IN_ARRAY = 64  # barriers in a variable that are named by it: in more, they are among other things


def ranges(numbers):
    """0-3, 8"""
    runs = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def plural(count, what):
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class Row:
    """One way in which an entry is used."""

    def __init__(self):
        self.count, self.lines, self.warps, self.blocked = 0, set(), {}, 0

    def add(self, place, warp=None, lanes=0):
        self.count += 1
        self.lines.add(place)
        if warp is not None:
            self.warps[warp] = self.warps.get(warp, 0) | lanes


class Entry:
    """A buffer or an mbarrier, or an array of them."""

    def __init__(self, name):
        self.name = name
        self.indices, self.ranks, self.rows = set(), set(), {}
        self.bytes = self.first = None
        self.phases, self.expected, self.init, self.left = 0, set(), set(), {}

    def row(self, role, what):
        return self.rows.setdefault((role, what), Row())


# A piece of shared memory of one block that is handed over as a whole.
Part = namedtuple("Part", "name index offset bytes")


def named_part(cluster, offset):
    for member in cluster.members:
        inside = offset - member["offset"]
        if 0 <= inside < member["bytes"]:
            number, index = inside // member["stride"], []
            for count in reversed(member["indices"]):
                number, last = divmod(number, count)
                index.insert(0, last)
            return Part(member["member"], tuple(index), offset - inside % member["stride"], member["stride"])
    for name, variable in cluster.variables.items():
        if variable["bytes"] and 0 <= offset - variable["offset"] < variable["bytes"]:
            return Part(name, (), variable["offset"], variable["bytes"])
    return None


def merged(pieces, touching):
    """[[begin, end]]: pieces that overlap, or touch each other, in one."""
    areas = []
    for first, length in sorted(pieces):
        if areas and first < areas[-1][1] + touching:
            areas[-1][1] = max(areas[-1][1], first + length)
        else:
            areas.append([first, first + length])
    return areas


def unnamed_parts(cluster):
    """Parts of memory that no declaration names: what one copy writes or reads, or several side by side whose bytes the
    same phases count, and what threads access beside that. Those that have one size and the same copies share a name."""
    copied, touched, counted, phases = {}, set(), {}, {}
    for event in cluster.events:
        if event[0] == "copy":
            for address, length in event[10] + event[11]:
                if not named_part(cluster, address & OFFSET):
                    tensor = event[12]["global"] if event[12] else ""
                    copied.setdefault((address & OFFSET, length), set()).add((event[6], tensor))
                    phase = (event[8] & OFFSET, phases.get(event[8])) if event[8] else None
                    counted.setdefault((address & OFFSET, length), set()).add(phase)
        elif event[0] == "mbarrier":
            phases[event[2]] = event[4]
        elif event[0] == "shared":
            for address, stride, count in event[8]:
                touched |= {((address + n * stride) & OFFSET, event[6]) for n in range(count)}
    areas = merged(copied, 0)
    starts = [first for first, _ in areas]
    uses, counts = [set() for _ in areas], [set() for _ in areas]
    for piece, use in copied.items():
        at = bisect_right(starts, piece[0]) - 1
        uses[at] |= use
        counts[at] |= counted[piece]

    def is_known(offset):
        at = bisect_right(starts, offset) - 1
        return (at >= 0 and offset < areas[at][1]) or named_part(cluster, offset)

    beside = merged({piece for piece in touched if not is_known(piece[0])}, 1)
    parts, before = [], None
    for (first, last), use, count in zip(areas, uses, counts):
        if parts and parts[-1][1:] == (first, tuple(sorted(use))) and count == before and None not in count:
            first = parts.pop()[0]
        parts.append((first, last, tuple(sorted(use))))
        before = count
    parts += [(first, last, ()) for first, last in beside]
    return [Part((last - first, use), (first,), first, last - first) for first, last, use in sorted(parts)]


class Reader:
    """Goes through the events of one cluster and adds what happens to the entries of its kernel."""

    def __init__(self, recording, cluster, entries):
        self.recording, self.cluster, self.entries = recording, cluster, entries
        self.per_block = cluster.definition["warps_per_block"]
        self.unnamed = unnamed_parts(cluster)
        self.starts = [part.offset for part in self.unnamed]
        self.numbers = {}  # of barriers without a name, by address
        self.barrier_names = self.name_barriers()
        self.parts = {}  # by offset
        self.copies, self.issuers = {}, {}
        self.states = {}  # of barriers, by address: (phase, pending, expected, bytes)
        self.waiting = {}  # (warp, lane): (barrier, parity, place)
        self.blocked = set()  # (warp, barrier): it has waited for the answer that comes next
        self.generations = {}  # of other barriers: how often they have completed, and who has arrived since
        self.arrivals = {}  # by warp: [(event, barrier, its phase, place, lanes)]
        self.observed = {}  # by warp: [(event, barrier, phase)]
        self.use = {}  # of a buffer: [fills, reads], each (event, warp, lanes), since it was last the other way round

    # ---- Names ----
    def name_barriers(self):
        """By their variable, or else by numbers, as in a page: {address: (name, index)}."""
        inits, with_bytes, used, names, unnamed = {}, set(), set(), {}, []
        for event in self.cluster.events:
            if event[0] == "mbarrier":
                inits.setdefault(event[2], (0, 0, 0))  # an mbarrier that was never initialised
                if event[3] == "init":
                    place = self.recording.places[event[10]]
                    inits[event[2]] = (event[6], place["line"], place["inner_line"])
                else:
                    used.add(event[2])
                    if event[7]:
                        with_bytes.add(event[2])
        numbers = {}
        for address in sorted(inits):
            number = numbers[address >> 24] = numbers.get(address >> 24, -1) + 1
            part = named_part(self.cluster, address & OFFSET)
            inside = ((address & OFFSET) - part.offset) // BARRIER_BYTES if part else 0
            if part and inside < MOST_IN_ARRAY:
                names[address] = (part.name, part.index + ((inside,) if part.bytes > BARRIER_BYTES else ()))
                continue
            # Neighbours that are used alike share an entry. Of one that is never used the init is known.
            counts = address in with_bytes if address in used else None
            last = unnamed[-1] if unnamed and unnamed[-1][2][-1] >> 24 == address >> 24 else None
            if last and last[0][0] == inits[address] and (counts is None or last[0][1] in (None, counts)):
                last[0] = (inits[address], last[0][1] if counts is None else counts)
                last[1].append(number)
                last[2].append(address)
            else:
                unnamed.append([(inits[address], counts), [number], [address]])
        for _, group, addresses in unnamed:
            for number, address in zip(group, addresses):
                names[address] = (f"mbarrier{'s' if len(group) > 1 else ''} {ranges(group)}", ())
                self.numbers[address] = number
        return names

    def barrier(self, address):
        return self.barrier_names.get(address, ("?", ()))[0]

    def entry(self, kind, name, index, address, size):
        entry = self.entries.setdefault((kind, name), Entry(name))
        entry.indices.add(index)
        entry.ranks.add(address >> 24)
        entry.bytes = size
        entry.first = min(address & OFFSET, entry.first if entry.first is not None else OFFSET)
        return entry

    def parts_of(self, pieces):
        """The buffers that these bytes belong to, each once, as (rank, part)."""
        found = {}
        for address, length in pieces:
            first, last = address & OFFSET, (address & OFFSET) + length
            while first < last:
                part = self.parts.get(first) or self.part_at(first)
                if not part:
                    break
                self.parts[first] = part
                found[address >> 24, part.offset] = part
                first = part.offset + part.bytes
        return [(rank, part) for (rank, _), part in found.items()]

    def part_at(self, offset):
        at = bisect_right(self.starts, offset) - 1
        unnamed = self.unnamed[at] if at >= 0 else None
        return named_part(self.cluster, offset) or (
            unnamed if unnamed and offset < unnamed.offset + unnamed.bytes else None)

    def buffer(self, rank, part):
        kind = "buffer" if isinstance(part.name, str) else "unnamed"
        return self.entry(kind, part.name, part.index, rank << 24 | part.offset, part.bytes)

    # ---- Who has handed something over ----
    def handed(self, givers, taker, now):
        """By what each of the givers, {(warp, since)}, has let the taker go on: {text: [(warp, lanes, place)]}. Of the
        taker itself, if it is one of them, only what the others have done, too."""
        by_giver = {giver: self.seen_arrivals(giver, since, taker, now) for giver, since in givers}
        own = by_giver.pop(taker, {})
        by_giver = {giver: ways for giver, ways in by_giver.items() if ways}
        texts = set().union(*by_giver.values())
        common = texts.intersection(*by_giver.values()) if len(by_giver) == len(givers) - (taker in dict(givers)) else set()
        by_giver[taker] = own
        return {text: [(giver, *ways[text]) for giver, ways in sorted(by_giver.items()) if text in ways]
                for text in sorted(common or texts)}

    def seen_arrivals(self, giver, since, taker, now):
        """The first arrivals of each kind after `since` that the taker has seen, of all lanes: {text: (lanes, place)}."""
        found, ways = {}, {}
        for at, key, phase, place, lanes, text in self.since(giver, since):
            if text not in found and self.has_seen(taker, key, phase, at, now):
                found[text], ways[text] = (key, phase, place), (lanes, place)
            elif found.get(text) == (key, phase, place):
                ways[text] = (ways[text][0] | lanes, place)
        return ways

    def since(self, warp, event):
        """What the warp has arrived at after this event."""
        mine = self.arrivals.get(warp, [])
        return mine[bisect_left(mine, (event + 1,)):]

    def has_seen(self, taker, key, phase, since, now):
        for at, seen, seen_phase in reversed(self.observed.get(taker, ())):
            if at < since:
                return False
            if at < now and seen == key and seen_phase >= phase:
                return True
        return False

    def passed_on(self, role, entry, givers, taker, now, first=True):
        """first: nobody has taken it yet, so that the givers' waits for their own copies are to be counted."""
        for warp, (since, group) in givers if first else ():
            for at, key, _, place, lanes, text in self.since(warp, since):
                if key == group and at < now:
                    entry.row(role, text).add(place, warp, lanes)
                    break
        for text, ways in self.handed([(warp, since) for warp, (since, _) in givers], taker, now).items():
            for warp, lanes, place in ways:
                entry.row(role, text).add(place, warp, lanes)

    # ---- Buffers ----
    def filled(self, rank, part, what, n, warp, lanes, place, group=None, by_barrier=False):
        entry, (fills, reads) = self.buffer(rank, part), self.use.setdefault((rank, part.offset), ({}, {}))
        entry.row("filled", what).add(place, warp, lanes)
        if reads:
            self.passed_on("freed", entry, reads.items(), warp, n)
            fills.clear()
            reads.clear()
        if not by_barrier:
            fills[warp] = (n, group)

    def read(self, rank, part, what, n, warp, lanes, place, group=None):
        entry, (fills, reads) = self.buffer(rank, part), self.use.setdefault((rank, part.offset), ({}, {}))
        if fills and warp not in reads:
            self.passed_on("ready", entry, fills.items(), warp, n, first=not reads)
        entry.row("read", what).add(place, warp, lanes)
        reads[warp] = (n, group)

    def copy(self, n, event):
        _, _, number, warp, lanes, place, kind, size, barrier, ranks, reads, writes, tensor = event
        name = f" of {tensor['name']}" if tensor and tensor["name"] else ""
        self.copies[number] = f"{kind}{name}, {size:,} bytes{' a thread' if lanes & (lanes - 1) else ''}"
        self.issuers[number] = warp
        group = "cp.async" if kind.startswith("cp.async") else "bulk"
        reported = f", to {self.barrier(barrier)}" if barrier else ""
        if ranks & (ranks - 1):
            reported = f" to {bin(ranks).count('1')} blocks" + reported
        for rank, part in self.parts_of(writes):
            self.filled(rank, part, self.copies[number] + reported, n, warp, lanes, place, group, bool(barrier))
        for rank, part in self.parts_of(reads):
            self.read(rank, part, self.copies[number], n, warp, lanes, place, group)

    def shared(self, n, event):
        _, _, warp, lanes, place, access, size, _, runs = event
        use = self.read if access == "read" else self.filled
        what = {"read": "loads", "write": "stores"}.get(access, "atomics") + " of the threads"
        pieces = [(address + k * stride, size) for address, stride, count in runs for k in range(count)]
        for rank, part in self.parts_of(pieces):
            use(rank, part, what, n, warp, lanes, place)

    def wgmma(self, n, event):
        _, _, _, warp, place, reads = event
        # A range may reach past its tile: it spans all of the tile's rows.
        for rank, part in self.parts_of([(address, 1) for address, _, _ in reads]):
            self.read(rank, part, "wgmma", n, warp, ALL_LANES, place)

    # ---- Barriers ----
    def arrive(self, n, warp, key, phase, place, lanes, text):
        self.arrivals.setdefault(warp, []).append((n, key, phase, place, lanes, text))

    def mbarrier(self, n, event):
        _, _, address, why, phase, _, expected, _, warp, lane, place, copy = event
        name, index = self.barrier_names[address]
        entry = self.entry("barrier", name, index, address, BARRIER_BYTES)
        before = self.states.get(address, event[4:8])
        self.states[address] = event[4:8]
        lanes = 1 << lane
        if why == "init":
            entry.expected.add(expected)
            entry.init.add(place)
            return
        entry.phases += phase - before[0]
        word = re.match(r"[\w.]*?mbarrier\.(\w+(?:\.expect_tx)?)", self.recording.places[place]["text"])
        word = word[1] if word else why
        if why == "landed":
            # Bytes, or the arrival of a thread whose copies have landed.
            if self.copies[copy].startswith("cp.async"):
                entry.row("arrives", "when the thread's cp.async have landed").add(place, warp, lanes)
                self.arrive(n, warp, address, before[0], place, lanes, f"{name}: arrives when the copies have landed")
            else:
                entry.row("bytes", self.copies[copy] + self.from_where(self.issuers[copy], address)).add(place)
            return
        announced = event[7] - before[3] if phase == before[0] or event[7] else 0
        what = word + (f", {announced:,} bytes" if why in ("arrive", "expect") and announced > 0 else "")
        what += self.from_where(warp, address)
        if why in ("arrive", "drop"):
            entry.row("arrives", what).add(place, warp, lanes)
            self.arrive(n, warp, address, before[0], place, lanes, f"{name}: {word}")
        elif why in ("expect", "complete_tx", "pending"):
            entry.row("bytes" if why != "pending" else "arrives", what).add(place, warp, lanes)

    def from_where(self, warp, address):
        return "" if warp // self.per_block == address >> 24 else FAR

    def named_barrier(self, n, warp, lanes, place, key, text, complete):
        generation, partners = self.generations.setdefault(key, (0, set()))
        self.arrive(n, warp, key, generation, place, lanes, text)
        partners.add(warp)
        if complete:
            for partner in partners:
                self.observed.setdefault(partner, []).append((n, key, generation))
            self.generations[key] = (generation + 1, set())

    def waits(self, n, event):
        _, _, warp, lanes, place, address, phase = event
        name, index = self.barrier_names[address]
        row = self.entry("barrier", name, index, address, BARRIER_BYTES).row("waits", "")
        row.add(place, warp, lanes)
        row.blocked += (warp, address) in self.blocked
        self.blocked.discard((warp, address))
        self.observed.setdefault(warp, []).append((n, address, phase))

    def wait(self, event):
        _, _, warp, lanes, place, on = event
        for lane in range(32):
            if lanes >> lane & 1:
                self.waiting[warp, lane] = (on[1], on[2], place) if on else None
        if on:
            self.blocked.add((warp, on[1]))

    def go(self):
        for n, event in enumerate(self.cluster.events):
            kind = event[0]
            if kind in ("copy", "shared", "wgmma", "mbarrier"):
                getattr(self, kind)(n, event)
            elif kind == "observed":
                self.waits(n, event)
            elif kind == "wait":
                self.wait(event)
            elif kind == "woke":
                for lane in range(32):
                    if event[3] >> lane & 1:
                        self.waiting.pop((event[2], lane), None)
            elif kind == "bar":
                _, _, warp, lanes, place, rank, number, _, complete = event
                self.named_barrier(n, warp, lanes, place, ("bar", rank, number), f"bar {number}", complete)
            elif kind == "cluster_barrier":
                _, _, warp, lanes, place, _, complete = event
                self.named_barrier(n, warp, lanes, place, ("cluster",), "barrier.cluster", complete)
            elif kind == "awaited":
                _, _, warp, lanes, place, group, pending, reads_only = event
                text = f"{group} wait_group{'.read' if reads_only else ''} {pending}"
                self.arrive(n, warp, group, n, place, lanes, text)
        self.what_is_left()

    def what_is_left(self):
        stuck = {}
        for (warp, lane), wait in self.waiting.items():
            if wait:
                stuck.setdefault(wait, {}).setdefault(warp, 0)
                stuck[wait][warp] |= 1 << lane
        for (address, parity, place), warps in stuck.items():
            if address in self.states:
                name, index = self.barrier_names[address]
                phase, pending, expected, missing = self.states[address]
                lacks = [f"{pending} of {plural(expected, 'arrival')}"] if pending else []
                lacks += [plural(missing, "byte")] if missing > 0 else []
                label = f"mbarrier {self.numbers[address]}" if address in self.numbers else self.label(name, {index})
                stuck_at = (label, place, parity, phase, " and ".join(lacks))
                self.entry("barrier", name, index, address, BARRIER_BYTES).left.setdefault(stuck_at, {}).update(warps)

    @staticmethod
    def label(name, indices):
        return name + "".join(f"[{ranges(dimension)}]" for dimension in zip(*indices))


class Sheet:
    """What was read, as text."""

    def __init__(self, recording, clusters):
        self.recording, self.clusters = recording, clusters
        self.per_block = clusters[0].definition["warps_per_block"]
        self.blocks = len(clusters[0].definition["blocks"])
        self.entries = {}
        for cluster in clusters:
            Reader(recording, cluster, self.entries).go()
        rows = [row for entry in self.entries.values() for row in entry.rows.values()]
        places = {place for row in rows for place in row.lines}
        places |= {place for entry in self.entries.values() for place in entry.init}
        places |= {place for entry in self.entries.values() for _, place, *_ in entry.left}
        # A kernel that is a call of something else has all its lines at that call: then the lines of what was called.
        outer = {(place["file"], place["line"]) for place in map(recording.places.get, places)}
        self.inner = len(outer) == 1 and len(places) > 1
        self.files = sorted({self.line_of(place)[0] for place in places})
        self.file = self.files[0] if len(self.files) == 1 else None
        self.numbered = len(self.files) > 1 and max(map(len, self.files)) > LONG_NAME

    def line_of(self, place):
        place = self.recording.places[place]
        inner = self.inner and place["inner_line"]
        file, line = (place["inner_file"], place["inner_line"]) if inner else (place["file"], place["line"])
        if file < 0:
            return "PTX", place["ptx_line"]
        return self.recording.files[file]["path"].rpartition("/")[2], line

    def where(self, places):
        by_file = {}
        for file, line in {self.line_of(place) for place in places}:
            by_file.setdefault(file, set()).add(line)
        if self.file:
            lines = by_file[self.file]
            return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, sorted(lines)))}"
        shown = {file: f"[{self.files.index(file) + 1}]" if self.numbered else file for file in by_file}
        return "; ".join(f"{shown[file]}:{','.join(map(str, sorted(lines)))}" for file, lines in sorted(by_file.items()))

    def who(self, warps):
        if not warps:
            return ""
        by_rank = {}
        for warp, lanes in warps.items():
            by_rank.setdefault(warp // self.per_block, {})[warp % self.per_block] = lanes
        alike = len({tuple(sorted(mine)) for mine in by_rank.values()}) == 1
        mine = [warp % self.per_block for warp in warps]
        text = f"warp{'s' if len(set(mine)) > 1 else ''} {ranges(mine)}"
        lanes = [lane for lane in range(32) if any(each >> lane & 1 for each in warps.values())]
        if len(lanes) < 32:
            text += f" lane{'s' if len(lanes) > 1 else ''} {ranges(lanes)}"
        if self.blocks == 1:
            return text
        if alike and len(by_rank) == self.blocks:
            return text  # the head says so
        return f"{text} of block{'s' if len(by_rank) > 1 else ''} {ranges(by_rank)}"

    def rows(self, entry):
        order = ["filled", "ready", "read", "freed", "arrives", "bytes", "waits"]
        for (role, what), row in sorted(entry.rows.items(), key=lambda item: (order.index(item[0][0]), FAR in item[0][1])):
            if role in ("arrives", "bytes") and entry.phases and row.count % entry.phases == 0:
                what += f" ({row.count // entry.phases} a phase)"
            if role == "waits":
                what = f"{row.blocked:,} had to wait" if row.blocked else "none had to wait"
            yield (role, self.who(row.warps) or "copies", f"{row.count:,} x", self.where(row.lines), what)

    def lines(self):
        launch = self.clusters[0].launch
        launches = len({cluster.definition["launch"] for cluster in self.clusters})
        recorded = plural(len(self.clusters), "block" if self.blocks == 1 else "cluster")
        if self.blocks > 1:
            recorded += f" of {self.blocks} blocks"
        yield (f"{launch['kernel']}: {recorded} of {launches:,} launch{'es' if launches > 1 else ''}, "
               f"{self.clusters[0].definition['threads_per_block']:,} threads a block"
               + (f"; lines of {self.file}" if self.file else ""))
        if self.numbered:
            yield "lines of " + ", ".join(f"[{n}] {file}" for n, file in enumerate(self.files, 1))
        if self.blocks > 1:
            yield "(in each block alike, where no block is named)"
        if not self.entries:
            yield "uses no shared memory"
        for kind in ("buffer", "unnamed", "barrier"):
            mine = [entry for (each, _), entry in self.entries.items() if each == kind]
            for entry in sorted(mine, key=lambda entry: entry.first):
                yield ""
                yield from self.lines_of(kind, entry)

    def lines_of(self, kind, entry):
        yield self.heading(kind, entry)
        rows = list(self.rows(entry))
        widths = [max(len(row[column]) for row in rows) for column in range(4)] if rows else []
        for role, who, count, where, what in rows:
            yield f"  {role:7} {who:{widths[1]}}  {count:>{widths[2]}}  {where:{widths[3]}}  {what}".rstrip()
        for (name, place, parity, phase, lacks), warps in list(entry.left.items())[:MOST_STUCK]:
            yield (f"  STUCK   {self.who(warps)} at {self.where([place])}, waiting for parity {parity} of {name}; "
                   f"phase {phase} lacks {lacks or 'nothing'}")
        if len(entry.left) > MOST_STUCK:
            yield f"  STUCK   in {plural(len(entry.left) - MOST_STUCK, 'further way')}"

    def heading(self, kind, entry):
        if kind == "barrier":
            expected = " or ".join(map(str, sorted(entry.expected)))
            arrivals = "arrival" if entry.expected == {1} else "arrivals"
            name = Reader.label(entry.name, entry.indices)
            named = " " not in entry.name  # a number in "mbarriers 0-3"
            kind, name = ("mbarrier, ", name) if named else ("", f"{name} at 0x{entry.first:x}")
            return (f"{name}: {kind}{expected} {arrivals} a phase "
                    f"(init: {self.where(entry.init)}), {plural(entry.phases, 'phase')} completed")
        if kind == "unnamed":
            offsets = sorted(index[0] for index in entry.indices)
            shown = ", ".join(f"+{offset:,}" for offset in offsets[:6]) + (", ..." if len(offsets) > 6 else "")
            return f"{len(offsets)} x {entry.bytes:,} bytes at {shown}"
        return f"{Reader.label(entry.name, entry.indices)}: {entry.bytes:,} bytes"


def main():
    recording = Recording(sys.argv[1], without=("step", "bytes", "fence", "commit", "exit"))
    kernels = {}
    for cluster in recording.clusters:
        key = (cluster.launch["symbol"], len(cluster.definition["blocks"]), cluster.definition["threads_per_block"])
        kernels.setdefault(key, []).append(cluster)
    lines = []
    for clusters in kernels.values():
        lines += ["", *Sheet(recording, clusters).lines()]
    if recording.stopped:
        lines += ["", f"The recording stopped early: {recording.stopped}"]
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python complains of the same once more
        sys.exit(f"the output cannot be written: {error.strerror}")


if len(sys.argv) != 2:
    sys.exit("usage: handoffs.py RECORDING")
main()
