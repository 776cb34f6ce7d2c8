#!/usr/bin/env python3
"""draw.py [--to FOLDER] CHAPTER...: draws the figures of the chapters as SVG, from recordings and measurements.

Most figures run a program of the chapter on the emulator, record it, and draw what was recorded. The others draw
a measured table (tables.py). Nothing is placed by hand. The figures go to CHAPTER/figures/, or with --to to
FOLDER/CHAPTER/figures/, which is how a test finds out whether one is stale. Needs python3 and the built programs.
"""
import os
import re
import subprocess
import sys
import tempfile

import tables
from picture import ROOT, Picture

sys.path.insert(0, os.path.join(ROOT, "emulator", "record"))
from recording import Recording, swizzled


def record(program, *arguments, blocks="first", clock="off"):
    """Runs a program of the chapters on the emulator, always in the same order; with a clock in its order and times."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recording.jsonl")
        environment = {**os.environ, "EMULATOR_RECORD": path, "EMULATOR_RECORD_BLOCKS": blocks,
                       "EMULATOR_THREADS": "1", "EMULATOR_SCHEDULE": "late", "EMULATOR_CLOCK": clock}
        if clock != "off":  # only the time is wanted
            environment.update(EMULATOR_MATH="skip", EMULATOR_CHECK="off")
        run = subprocess.run([f"{ROOT}/emulator/emulate", f"{ROOT}/build/{program}", *arguments],
                             env=environment, capture_output=True, text=True, check=False)
        if not os.path.exists(path):
            sys.exit(f"draw: {program} recorded nothing: build it first (make build/{program})\n{run.stderr}")
        return Recording(path)


def variable_offset(cluster, name):
    """The offset of the shared variable of this name."""
    for symbol, line in cluster.variables.items():
        if symbol == name or re.search(rf"E{len(name)}{name}$", symbol):
            return line["offset"]
    sys.exit(f"draw: {cluster.launch['kernel']} has no shared variable {name}")


# ---- 02: one load ----------------------------------------------------------------------------------

def one_load():
    """What a TMA load is: the matrix, the tile, the engine and the barrier, with the numbers of first_load."""
    cluster = record("02_tma_load/first_load").clusters[0]
    copy = cluster.copies()[0]
    (columns, rows), (box_columns, box_rows), (x, y) = (copy["tensor"][key] for key in ("dims", "box", "at"))
    changes = [event for event in cluster.events if event[0] == "mbarrier"]
    expected = max(event[7] for event in changes)
    picture = Picture("One thread gives the copy engine a tensor map, two coordinates and a barrier; the engine copies the tile "
                      "and takes its bytes off the barrier")
    picture.text(8, 18, "A TMA load: one thread asks, the copy engine works, a barrier counts the bytes", "title")
    picture.box(200, 34, 310, 40, "empty")
    picture.text(212, 51, "one thread of the block", "small")
    picture.text(212, 66, f"tma_load_2d(tile, &map, {x}, {y}, &barrier)", "small")
    left, top, cell = 8, 112, 3
    picture.text(left, top - 8, f"global memory: {rows} x {columns} matrix", "small")
    for row in range(rows // box_rows):
        for column in range(columns // box_columns):
            chosen = (column * box_columns, row * box_rows) == (x, y)
            picture.box(left + cell * box_columns * column, top + cell * box_rows * row, cell * box_columns, cell * box_rows,
                        "cell c1" if chosen else "cell empty")
    picture.text(left + cell * x + 4, top + cell * y + 16, f"({x},{y})", "small")
    picture.text(left, top + cell * rows + 16, "the tensor map describes it:", "small faint")
    picture.text(left, top + cell * rows + 30, "address, sizes, strides, box", "small faint")
    picture.box(290, 118, 130, 66, "cell c0")
    picture.text(355, 147, "copy engine", "", anchor="middle")
    picture.text(355, 163, "(TMA)", "", anchor="middle")
    picture.arrow([(355, 74), (355, 114)])
    picture.arrow([(left + cell * columns + 4, 150), (286, 150)])
    picture.text(470, 104, "shared memory of the block", "small")
    picture.box(470, 118, 4 * box_columns, 4 * box_rows, "cell c1")
    picture.text(544, 138, f"tile, {box_rows} x {box_columns}, {copy['bytes']} bytes", "small")
    picture.box(470, 168, 64, 20, "cell c5")
    picture.text(544, 182, f"barrier: {expected} bytes expected, then 0", "small")
    picture.arrow([(424, 134), (466, 134)])
    picture.arrow([(424, 178), (466, 178)])
    picture.text(200, 226, "The other threads do something else, or wait for the barrier.", "small faint")
    return picture


# ---- 02: the phases of a barrier ------------------------------------------------------------------

def barrier_phases():
    recording = record("02_tma_load/tma_load")
    cluster = max(recording.clusters, key=lambda each: sum(e[0] == "mbarrier" for e in each.events))
    changes = [event for event in cluster.events if event[0] == "mbarrier"]
    picture = Picture("What one mbarrier counts while four tiles are loaded: phase, pending arrivals, pending bytes")
    names = {"init": "init", "arrive": "arrive_expect_tx", "landed": "bytes land", "expect": "expect_tx",
             "inval": "inval"}
    # arrive.expect_tx is one instruction; a load is recorded when its bytes land.
    left, width = 150, 62
    most = max(event[7] for event in changes)
    rows = [("phase", 34), ("arrivals pending", 62), ("bytes pending", 90)]
    for name, y in rows:
        picture.text(8, y + 14, name, "faint")
    for i, event in enumerate(changes):
        x = left + i * width
        phase, pending, size = event[4], event[5], event[7]
        picture.box(x, 34, width, 20, f"cell c{2 if phase % 2 == 0 else 0}")
        picture.text(x + width / 2, 48, f"{phase}", anchor="middle")
        picture.box(x, 62, width, 20, "cell c1" if pending else "cell empty")
        picture.text(x + width / 2, 76, f"{pending}", anchor="middle")
        picture.box(x, 90, width, 20, "cell empty")
        if size > 0:
            picture.box(x, 90, width * size / most, 20, "cell c5")
        picture.text(x + width / 2, 104, f"{size:,}", anchor="middle")
        picture.text(x + 4, 126 + 13 * (i % 2), names.get(event[3], event[3]), "small")
        if i and phase != changes[i - 1][4]:
            picture.path([(x, 26), (x, 114)], "mark")
    picture.text(8, 18, "One barrier; a red line: the phase completes, because nothing is pending any more", "title")
    picture.text(8, 126, "after", "faint")
    return picture


# ---- 03: the life of a store ----------------------------------------------------------------------

def store_life():
    recording = record("03_tma_store/tma_store")
    cluster = recording.clusters[0]
    picture = Picture("A TMA store over time: a warp writes the tile and fences, one thread issues the store and waits until the "
                      "engine has read the tile; the data are in global memory later")
    copy = cluster.copies()[0]
    events = [(n, e) for n, e in enumerate(cluster.events) if e[0] not in ("step", "bytes")]
    # Only what the picture shows takes place: an event is as wide as any other.
    moments = {n: i for i, (n, _) in enumerate(events)}
    left, width, lane = 110, 560 / len(events), 26
    x = lambda n: left + width * moments[n]
    picture.text(8, 18, "One tile of 32 x 32 numbers is stored, seen over time (each recorded event is equally wide)", "title")
    picture.text(8, 48, "warp 0", "faint")
    picture.box(left, 34, 560, 18, "empty")
    styles = {"shared": "c1", "fence": "c5", "bar": "c4", "commit": "c6"}
    for n, event in events:
        if event[0] in styles:
            picture.box(x(n) + 1, 34, max(2, width - 2), 18, styles[event[0]])
    picture.box(x(copy["issued"]) + 1, 34, width - 2, 18, "c7")
    waits = [n for n, event in events if event[0] == "wait"]
    ends = [n for n, event in events if event[0] == "woke"]
    for begin, end in zip(waits, ends):
        picture.box(x(begin), 39, x(end) - x(begin), 8, "c0")
    y = 34 + lane
    picture.text(8, y + 14, "copy engine", "faint")
    picture.box(x(copy["issued"]), y, x(copy["source"]) - x(copy["issued"]), 18, "c3")
    picture.box(x(copy["source"]), y, x(copy["landed"]) - x(copy["source"]) + width, 18, "c2")
    legend = [("c1", "the threads write"), ("c5", "fence.proxy.async"), ("c4", "__syncthreads"), ("c7", "the store is issued"), ("c6", "commit_group"),
              ("c0", "wait_group.read waits"), ("c3", "the engine reads the tile"), ("c2", "on its way to global memory")]
    for i, (style, words) in enumerate(legend):
        picture.box(left + 190 * (i % 4), y + lane + 6 + 18 * (i // 4), 12, 12, style)
        picture.text(left + 190 * (i % 4) + 17, y + lane + 16 + 18 * (i // 4), words, "small")
    return picture


# ---- 05: a multicast and its masks ----------------------------------------------------------------

def multicast_masks():
    recording = record("05_multicast/multicast")
    picture = Picture("Which load filled which rows of the tile in both blocks: one slice each, the same slice twice, and slices swapped")
    picture.text(8, 18, "Who filled which rows of the tile: two blocks, each issues one slice with mask 0b11", "title")
    for i, cluster in enumerate(recording.clusters):
        copies = cluster.copies()
        tile = variable_offset(cluster, "tile")
        x = 8 + 232 * i
        slices = []
        for copy in copies:
            writes = [w for w in copy["writes"] if w[0] >> 24 == 0]
            slices.append((writes[0][0] - tile) // writes[0][1])
        picture.text(x, 42, f"rank 0 issues slice {slices[0]}, rank 1 slice {slices[1]}", "small")
        for rank in range(2):
            left = x + 106 * rank
            picture.text(left, 60, f"rank {rank}", "faint")
            for half in range(2):
                author = cluster.writer_of(rank << 24 | tile + half * 8 * 64)
                is_copy = author and author[0] == "c"
                issuer = copies[int(author[1:])]["warp"] // cluster.definition["warps_per_block"] if is_copy else None
                y = 66 + 74 * half
                picture.box(left, y, 98, 72, "cell empty" if issuer is None else f"cell c{issuer}")
                picture.text(left + 49, y + 33, f"rows {8 * half} to {8 * half + 7}", "small", anchor="middle")
                words = "zeros" if issuer is None else f"load of rank {issuer}"
                picture.text(left + 49, y + 48, words, "small", anchor="middle")
    return picture


def masks():
    recording = record("05_multicast/masks")
    picture = Picture("Clusters of four blocks: which sender's line reaches which receiver, for four choices of masks")
    picture.text(8, 18, "Clusters of four: a column is a sender with its mask, a row is a receiver", "title")
    clusters = [each for each in recording.clusters if len(each.definition["blocks"]) == 4]
    for i, cluster in enumerate(clusters):
        left = 60 + 236 * i
        for copy in cluster.copies():
            sender = copy["warp"] // cluster.definition["warps_per_block"]
            x = left + 40 * sender
            picture.text(x + 20, 42, f"rank {sender}", "small", anchor="middle")
            picture.text(x + 20, 56, f"{copy['ranks']:04b}", "small faint", anchor="middle")
            for receiver in range(4):
                arrives = any(address >> 24 == receiver for address, _ in copy["writes"])
                picture.cell(x, 62 + 24 * receiver, 40, 24, *((f"c{sender}", sender) if arrives else ("empty",)))
        for receiver in range(4):
            picture.text(left - 6, 78 + 24 * receiver, f"rank {receiver}", "small faint", anchor="end")
    return picture


# ---- 06: swizzles and banks -----------------------------------------------------------------------

def swizzle_modes():
    recording = record("06_swizzle_3d/swizzle_3d")
    picture = Picture("Where the 16-byte chunks of a tile land in shared memory, for no swizzle and spans of 32, 64 and 128 bytes")
    picture.text(8, 18, "Shared memory, 128 bytes (32 banks) a line; a cell is 16 bytes: row.chunk of the tile, colour = chunk", "title")
    seen = []
    for cluster in recording.clusters:
        copy = cluster.copies()[0]
        tensor = copy["tensor"]
        if len(tensor["box"]) != 2 or tensor["swizzle"] in seen:
            continue
        seen.append(tensor["swizzle"])
        left = 8 + 262 * (len(seen) - 1)
        span = tensor["swizzle"]
        row_bytes = tensor["box"][0] * tensor["element_bytes"]
        picture.text(left, 42, f"{span}-byte swizzle" if span else "no swizzle", "faint")
        start = tensor["start"] & 0xFFFFFF
        for line in range(8):
            for place in range(8):
                address = start + line * 128 + place * 16
                logical = swizzled(span, address) - start
                row, chunk = logical // row_bytes, logical % row_bytes // 16
                picture.cell(left + 31 * place, 50 + 20 * line, 31, 20, f"c{chunk}", f"{row}.{chunk}")
    return picture


def bank_passes():
    recording = record("06_swizzle_3d/bank_conflicts")
    picture = Picture("Passes over the banks that reading a column of 32 rows takes, for each layout")
    picture.text(8, 18, "A warp reads down a column, thread i in row i: passes over the 32 banks for one read", "title")
    y = 40
    for cluster in recording.clusters:
        tensor = cluster.copies()[0]["tensor"]
        reads = [event for event in cluster.events if event[0] == "shared" and event[5] == "read"]
        if not reads:
            continue
        passes = max(event[7] for event in reads)
        row_bytes = tensor["box"][0] * tensor["element_bytes"]
        span = tensor["swizzle"]
        for x, words in ((8, f"rows of {row_bytes} bytes"), (130, f"{span}-byte swizzle" if span else "no swizzle"),
                         (250, f"{reads[0][6]} bytes per thread")):
            picture.text(x, y + 11, words, "small")
        picture.box(390, y, 12 * passes, 14, "cell c5" if passes > 4 else "cell c2")
        picture.text(396 + 12 * passes, y + 12, passes, "small")
        y += 17
    return picture


# ---- 07: two rungs of the ladder, one above the other ------------------------------------------------

def spans(cluster, begun, ended):
    """Pairs of times, those that touch joined into one: when at least one of these is under way."""
    joined = []
    for begin, end in sorted((cluster.events[b][1], cluster.events[e][1]) for b, e in zip(begun, ended) if e is not None):
        if joined and begin <= joined[-1][1] + 1:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([begin, end])
    return joined


def multiplications(cluster, warps):
    """When the tensor cores of a block have something to do for these warps."""
    begun = {e[2]: n for n, e in enumerate(cluster.events) if e[0] == "wgmma" and e[3] in warps}
    done = {e[2]: n for n, e in enumerate(cluster.events) if e[0] == "wgmma_done"}
    return spans(cluster, begun.values(), [done.get(number) for number in begun])


class Panel:
    """One rung over time: a row for each stage, for the tensor cores and for the stores of the first block."""

    def __init__(self, rung, clusters, begin):
        self.rung, self.begin, self.rows = rung, begin, []
        for cluster in clusters:
            copies = cluster.copies()
            loads = [c for c in copies if c["barrier"] and not c["barrier"] >> 24]
            for k, stage in enumerate(sorted({c["barrier"] for c in loads})):
                mine = [c for c in loads if c["barrier"] == stage]
                self.add(f"stage {k}", spans(cluster, [c["issued"] for c in mine], [c["landed"] for c in mine]), f"c{k % 4}")
            self.add("wgmma", multiplications(cluster, range(cluster.definition["warps_per_block"])), "c6")
            stores = [c for c in copies if c["kind"].endswith("store") and c["warp"] < cluster.definition["warps_per_block"]]
            if stores:
                self.add("TMA stores", spans(cluster, [c["issued"] for c in stores], [c["landed"] for c in stores]), "c5")

    def add(self, name, found, style):
        for row in self.rows:
            if row[0] == name:
                row[1].extend(found)
                return
        self.rows.append((name, list(found), style))


def draw_panels(picture, panels, clocks, y):
    left, width = 210, 690
    for panel in panels:
        for line, words in enumerate(panel.rung.split(": ")):
            picture.text(8, y + 10 + 14 * line, words, "small faint" if line else "")
        for name, found, style in panel.rows:
            picture.text(left - 6, y + 10, name, "small faint", anchor="end")
            shown = [(max(begin - panel.begin, 0), min(end - panel.begin, clocks)) for begin, end in found]
            picture.bars([(left + begin * width / clocks, max(1, (end - begin) * width / clocks))
                          for begin, end in shown if begin < end], y, 11, style)
            y += 14
        picture.parts.append(f'<path d="M{left} {y}H{left + width}" class="line"/>')
        y += 12
    return y


# Each rung with a picture of its own block and of the one before; and the product of which it is a tile.
RUNG_BEFORE = {"serial": "tiled", "ring": "serial", "producer_consumer": "ring", "two_consumers": "producer_consumer"}
SHOWN = ("--m", "2048", "--n", "2048", "--k", "768")


def next_rung(rung):
    """A whole tile of the rung before and of this one, from the block's start until its threads have stored the results."""
    panels, longest = [], 0
    for name in (RUNG_BEFORE[rung], rung):
        cluster = record(f"07_pipelined_gemm/{name}", *SHOWN, clock="h200").clusters[0]
        begin, end = cluster.events[0][1], cluster.events[-1][1]
        panel = Panel(name, [cluster], begin)
        work = dict(row[:2] for row in panel.rows)["wgmma"]
        panel.add("threads store", [(work[-1][1], end)], "c5")
        panel.rung += f": {100 * sum(b - a for a, b in work) / (end - begin):.0f} % multiplying"
        panels.append(panel)
        longest = max(longest, end - begin)
    clocks = -(-longest // 1000) * 1000
    picture = Picture(f"Copies, multiplications and stores of one tile over time, {RUNG_BEFORE[rung]} and {rung}")
    picture.text(8, 18, f"One block from start to end, {clocks:,} clocks on a modelled H200: copies of each stage, multiplications, stores",
                 "title")
    draw_panels(picture, panels, clocks, 34)
    return picture


def ring_moves():
    """The ring over time, with a line that moves along: what each stage and the tensor cores do at that moment."""
    clocks, seconds, left, width = 6000, 12, 210, 690
    cluster = record("07_pipelined_gemm/ring", *SHOWN, clock="h200").clusters[0]
    panel = Panel("", [cluster], cluster.events[cluster.copies()[0]["issued"]][1])
    picture = Picture("A ring of stages at work: copies fill the stages one after the other, while the tensor cores multiply")
    picture.text(8, 18, "One block of a GEMM, step by step: TMA fills a ring of stages, the tensor cores empty it", "title")

    def lit(x, y, box_width, words, style, found):
        """A box that is coloured while one of the spans is under way."""
        picture.box(x, y, box_width, 30, "cell empty")
        moments = [0.0]
        for begin, end in found:
            begin, end = (min(max(each - panel.begin, 0), clocks) / clocks for each in (begin, end))
            if begin < end:
                moments += [begin, end]
        # Colour is off at moment 0, on at 1, off at 2, and so on.
        if len(moments) > 2 and moments[1] == 0.0:
            moments = moments[2:]
            first = 1
        else:
            first = 0
            moments = moments[1:]
        states = [str(first)] + [str((i + 1 + first) % 2) for i in range(len(moments))]
        times = ";".join(f"{each:.4f}" for each in [0.0] + moments)
        picture.parts.append(f'<rect x="{x}" y="{y}" width="{box_width}" height="30" class="cell {style}" opacity="0">'
                             f'<animate attributeName="opacity" calcMode="discrete" dur="{seconds}s" repeatCount="indefinite" '
                             f'values="{";".join(states)}" keyTimes="{times}"/></rect>')
        picture.text(x + box_width / 2, y + 19, words, "small", anchor="middle")

    for i, (name, found, style) in enumerate(panel.rows):
        stage = name.startswith("stage")
        lit(left + 140 * i, 34, 120, f"{name}: loading" if stage else "multiplying", style, found)
    bottom = draw_panels(picture, [panel], clocks, 84)
    picture.parts.append(f'<line x1="{left}" x2="{left}" y1="76" y2="{bottom - 8}" class="mark">'
                         f'<animateTransform attributeName="transform" type="translate" from="0 0" to="{width} 0" dur="{seconds}s" '
                         f'repeatCount="indefinite"/></line>')
    picture.text(left, bottom + 6, f"{clocks:,} clocks on a modelled H200, from a recording of 07_pipelined_gemm/ring", "small faint")
    return picture


def end_of_a_tile(rung, before):
    """The same around the end of a tile, of which an SM computes another one after it."""
    clocks, lead = 20000, 3000
    picture = Picture(f"Copies and multiplications around the end of a tile, {before} and {rung}")
    picture.text(8, 18, f"One SM around the end of a tile, {clocks:,} clocks on a modelled H200", "title")
    panels = []
    for name in (before, rung):
        # A few clusters of those that begin at once, and all that follow, if each computes only one tile.
        clusters = record(f"07_pipelined_gemm/{name}", "--m", "2304", "--n", "2048", "--k", "512", clock="h200",
                          blocks="0-19,132-143").clusters
        shown = [clusters[0]]
        if len(clusters) > 10:  # where the first ends, the next one begins
            shown = [min(clusters[:10], key=lambda each: each.events[-1][1])]
            shown.append(min(clusters[10:], key=lambda each: each.events[each.copies()[0]["issued"]][1]))
        work = multiplications(shown[0], range(shown[0].definition["warps_per_block"]))
        stores = [c for c in shown[0].copies() if c["kind"].endswith("store")]
        if stores:
            end = shown[0].events[stores[0]["issued"]][1]
        elif len(shown) == 2:
            end = work[-1][1]
        else:  # where it multiplies nothing for longest
            end = max((after[0] - earlier[1], earlier[1]) for earlier, after in zip(work, work[1:]))[1]
        panels.append(Panel(name, shown, end - lead))
        if not stores:
            after = shown[0].events[-1][1] if len(shown) == 2 else min(begin for begin, _ in work if begin > end)
            panels[-1].add("threads store", [(end, after)], "c5")
    draw_panels(picture, panels, clocks, 34)
    return picture


def left_over_tiles():
    """Twelve pairs of tiles for ten clusters: whole tiles, and shares of equal length."""
    picture = Picture("Multiplications of ten clusters over time, for twelve pairs of tiles")
    picture.text(8, 18, "Twelve pairs of tiles for ten clusters: when their tensor cores multiply, on a modelled H200", "title")
    size = ("--m", "768", "--n", "1024", "--k", "2048", "--blocks", "20")
    panels = []
    for name in ("carried_tile", "pipelined_gemm"):
        panel = Panel(name, [], 0)
        for cluster in record(f"07_pipelined_gemm/{name}", *size, clock="h200", blocks="all").clusters:
            panel.rows.append((f"cluster {len(panel.rows)}", multiplications(cluster, range(12)), "c6"))
        panel.begin = min(row[1][0][0] for row in panel.rows)
        panels.append(panel)
    clocks = max(end - panel.begin for panel in panels for row in panel.rows for _, end in row[1])
    draw_panels(picture, panels, clocks, 34)
    return picture


# ---- 07: attention: multiplications and softmax -----------------------------------------------------

def softmaxes(recording, cluster, warp):
    """When a warp is in the lines of its program that call softmax()."""
    found, begun = [], None
    for event in cluster.events:
        if event[0] not in ("step", "exit") or event[2] != warp:
            continue
        place = recording.places[event[4]]
        lines = (recording.files[place["file"]]["text"] or "").splitlines() if place["file"] >= 0 else []
        within = event[0] == "step" and 0 < place["line"] <= len(lines) and " softmax(" in lines[place["line"] - 1]
        if within and begun is None:
            begun = event[1]
        elif not within and begun is not None:
            found.append([begun, event[1]])
            begun = None
    return found


def turns(cluster, warpgroup):
    """When a warpgroup has the turn: from when its named barrier is complete until it arrives at that of the other."""
    bars = [event for event in cluster.events if event[0] == "bar" and event[6] in (1, 2)]
    passed = [event[1] for event in bars if event[6] == 2 - warpgroup and event[2] == 4 * warpgroup]
    taken = [event[1] for event in bars if event[6] == 1 + warpgroup and event[8]]
    return [[begin, next((end for end in passed if end > begin), begin)] for begin in taken]


def attention():
    clocks = 12000
    picture = Picture("Turns, multiplications and softmax of one block over time, for the three attention programs")
    picture.text(8, 18, f"One block's first {clocks:,} clocks on a modelled H200: each warpgroup's turns, multiplications and softmax", "title")
    panels = []
    for name in ("attention_serial", "attention_overlap", "attention"):
        recording = record(f"07_pipelined_gemm/attention/{name}", "--length", "1024", clock="h200")
        cluster = recording.clusters[0]
        panel = Panel(name, [], cluster.events[cluster.copies()[0]["issued"]][1])
        warps = max(event[3] for event in cluster.events if event[0] == "wgmma") + 1
        for first in range(0, warps, 4):
            panel.add(f"wgmma {first // 4}", multiplications(cluster, range(first, first + 4)), "c6")
            panel.add(f"softmax {first // 4}", softmaxes(recording, cluster, first), "c2")
            if turns(cluster, first // 4):
                panel.add(f"has the turn {first // 4}", turns(cluster, first // 4), "c0")
        panel.add("tensor cores", multiplications(cluster, range(warps)), "c5")
        panels.append(panel)
    draw_panels(picture, panels, clocks, 34)
    return picture


# ---- 07: fragments --------------------------------------------------------------------------------

def fragment_layout():
    """Drawn from what the program prints, which asks the tensor cores register by register."""
    path = f"{ROOT}/tests/recorded/07_pipelined_gemm/fragment_layout.full.txt"
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    picture = Picture("Which thread of a warp holds which element of a wgmma accumulator, in which register")
    picture.text(8, 18, "Accumulator of m64n64k16, rows and columns 0 to 15: thread:register; colour = thread mod 4", "title")
    begin = next(i for i, line in enumerate(lines) if line.startswith("accumulator")) + 2
    for row, line in enumerate(lines[begin:begin + 16]):
        for column, held in enumerate(line.split()[1:]):
            thread = int(held.split(":")[0])
            picture.cell(30 + 46 * column, 46 + 19 * row, 46, 19, f"c{thread % 4}", held)
            if row == 0:
                picture.text(53 + 46 * column, 40, column, "small faint", anchor="middle")
        picture.text(24, 59 + 19 * row, row, "small faint", anchor="end")
    return picture


FIGURES = {
    "02_tma_load": {"one_load": one_load,
                    "barrier_phases": barrier_phases},
    "03_tma_store": {"store_life": store_life,
                     "copy_speed": tables.speeds},
    "04_store_reduce": {"accumulate": tables.sums},
    "05_multicast": {"multicast_masks": multicast_masks, "masks": masks},
    "06_swizzle_3d": {"swizzle_modes": swizzle_modes, "bank_passes": bank_passes},
    "07_pipelined_gemm": {"serial": lambda: next_rung("serial"),
                          "ring": lambda: next_rung("ring"),
                          "producer_consumer": lambda: next_rung("producer_consumer"),
                          "two_consumers": lambda: next_rung("two_consumers"),
                          "persistent": lambda: end_of_a_tile("persistent", "multicast"),
                          "tma_epilogue": lambda: end_of_a_tile("tma_epilogue", "persistent"),
                          "overlapped_epilogue": lambda: end_of_a_tile("overlapped_epilogue", "tma_epilogue"),
                          "pipelined_gemm": left_over_tiles,
                          "ring_moves": ring_moves, "fragment_layout": fragment_layout},
    "07_pipelined_gemm/attention": {"attention": attention},
}


def main(arguments):
    target = ROOT
    if arguments[:1] == ["--to"]:
        if len(arguments) < 2:
            sys.exit("usage: draw.py [--to FOLDER] CHAPTER...")
        target, arguments = arguments[1], arguments[2:]
    if not arguments:
        sys.exit("usage: draw.py [--to FOLDER] CHAPTER...")
    chapters = [os.path.basename(os.path.normpath(each)) for each in arguments]
    for chapter in (folder for folder in FIGURES if folder.split("/")[0] in chapters):
        for name, draw in FIGURES[chapter].items():
            folder = os.path.join(target, chapter, "figures")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
                file.write(draw().svg())
            print(f"  {chapter}/figures/{name}.svg")


main(sys.argv[1:])
