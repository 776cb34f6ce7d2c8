#!/usr/bin/env python3
"""figures.py CHAPTER...: writes measured tables and recorded outputs into the READMEs and other pages of chapters.

In a README, the lines between these two are replaced:

  <!-- begin: NAME [rows=A,B columns=C cell=D] [only=FIELD:VALUE] -->
  <!-- end: NAME -->

NAME       a table from CHAPTER/measured/NAME.csv (or CHAPTER/NAME.csv). What `make bench` has left
           in build/CHAPTER/NAME.csv since is copied there before. Its lines that start with '#' say
           GPU, driver and date and are printed below the table; a CSV without them is not taken. With
           rows, columns and cell the table is turned: one line for each A and B, one column for
           each value of C, holding D. only=FIELD:VALUE,... leaves the other lines out before that.
NAME.txt   the output of a program, from tests/recorded/CHAPTER/NAME.txt; with lines=1-12,40 those
           lines alone, and "..." where lines are left out.
NAME.cu    a part of a program of the chapter: from=WORD to=WORD, from the first line that contains WORD to
           the next that contains the other one; "^}" is a line that begins with "}". The same for NAME.cuh.
pitfalls   a table of the chapter's pitfalls, from their headers (common/make/pitfall-fields); with `grouped` by what one sees;
asides     of those that are not about the chapter's idea (a line "aside:" in NAME.fix).

time_and_bytes     in chapter 04: what each way to add takes, executes and moves, for 256 MiB of sums, from two tables.

In the pages of the root NAME is CHAPTER/NAME, or `thresholds`: which of two ways was faster, or `measured`: one line from each chapter's tables, or `found`: how many
bugs of public code FOUND.md describes, by project.
A table that was never measured stays as it is, and is named. It needs only python3.
"""
import glob
import math
import os
import re
import shutil
import sys

from picture import ROOT
from tables import Table

MARKER = re.compile(r"<!-- begin: (\S+)([^\n]*) -->\n(.*?)<!-- end: \1 -->", re.DOTALL)


def markdown(table):
    """A list of rows, the first of them the header, as a table; numbers to the right."""
    def is_number(text):
        return re.fullmatch(r"[-+]?[\d.,]+ ?[%x]?|-|", text) is not None
    right = [all(is_number(row[i]) for row in table[1:]) for i in range(len(table[0]))]
    rule = ["---:" if r else "---" for r in right]
    return "".join("| " + " | ".join(row) + " |\n" for row in [table[0], rule] + table[1:])


def turned(header, lines, rows, columns, cell, name):
    missing = [f for f in rows + [columns, cell] if f not in header]
    if missing:
        sys.exit(f"figures: {name}: no column {missing[0]!r} in the CSV, which has: "
                 + ", ".join(header))
    index = {field: header.index(field) for field in header}
    across, down, cells = [], [], {}
    for line in lines:
        x, y = line[index[columns]], tuple(line[index[f]] for f in rows)
        if x not in across:
            across.append(x)
        if y not in down:
            down.append(y)
        cells[y, x] = line[index[cell]]
    return [rows + across] + [list(y) + [cells.get((y, x), "") for x in across] for y in down]


def read_csv(chapter, name):
    """A measured table; None if there is none. What was measured since is copied beside the chapter first."""
    fresh = os.path.join(ROOT, "build", chapter, name + ".csv")
    kept = os.path.join(ROOT, chapter, "measured", name + ".csv")
    beside = os.path.join(ROOT, chapter, name + ".csv")
    if os.path.exists(beside):
        kept = beside
    if os.path.exists(fresh):
        if Table(fresh).notes:
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            shutil.copyfile(fresh, kept)
        else:
            print(f"  {os.path.relpath(fresh, ROOT)}: says no GPU, driver and date, not taken: "
                  "was make bench stopped?")
    if not os.path.exists(kept):
        return None
    table = Table(kept)
    if table.uneven:
        sys.exit(f"figures: {kept}: its lines have different numbers of columns")
    return table


def chosen_rows(header, lines, only, name):
    """The lines of a table in which FIELD is VALUE, for "FIELD:VALUE", and so on for each pair after a comma."""
    rows = lines
    for field, _, value in (pair.partition(":") for pair in only.split(",")):
        if field not in header:
            sys.exit(f"figures: {name}: only={only}: the CSV has no column {field!r}, but " + ", ".join(header))
        rows = [row for row in rows if row[header.index(field)] == value]
    if not rows:
        sys.exit(f"figures: {name}: only={only}: no line of the CSV has that")
    return rows


def table_text(chapter, name, options):
    table = read_csv(chapter, name)
    if table is None:
        return None
    header, lines = table.header, table.rows
    # Names of columns may hold spaces: a value ends where the next "word=" begins.
    fields = dict(re.findall(r"(\w+)=(.+?)(?=\s+\w+=|\s*$)", options))
    if fields:
        only = fields.pop("only", None)
        if only:
            lines = chosen_rows(header, lines, only, name)
    shown = [header] + lines
    if fields:
        unknown = set(fields) ^ {"rows", "columns", "cell"}
        if unknown:
            sys.exit(f"figures: {name}: give rows=, columns= and cell=, all three or none")
        shown = turned(header, lines, fields["rows"].split(","), fields["columns"], fields["cell"], name)
    return "\n" + markdown(shown) + "".join(f"\n{note}\n" for note in table.notes) + "\n"


def is_aside(path):
    """Is the mistake of this pitfall about something else than the chapter's idea?"""
    fix = path[:-len(".cu")] + ".fix"
    if not os.path.exists(fix):
        return False
    with open(fix, encoding="utf-8") as file:
        return any(line.startswith("aside: ") for line in file)


# What one sees, for a table in groups: the words, and the outcomes that begin so.
SEEN = [("It hangs:", "hangs"), ("It ends with an error:", "`"), ("Wrong results:", "wrong"), ("Right results, by luck:", "right"),
        ("Not measured:", "not measured")]


def pitfalls_text(chapter, asides, grouped):
    folder = os.path.join(ROOT, chapter, "pitfalls")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    names = sorted(name for name in names if name.endswith(".cu") and is_aside(os.path.join(folder, name)) == asides)
    if not names:
        return None
    rows, related = [], False
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            header = "".join(line for line in file.read().split("\n#include")[0].splitlines(True)
                             if line.startswith("//"))

        def field(pattern):
            match = re.search(pattern, header, re.MULTILINE)
            if match is None:
                sys.exit(f"figures: {chapter}/pitfalls/{name}: its header lacks {pattern!r}")
            return match.group(1).strip().replace("|", "\\|")

        # Names in a title are code: __threadfence_block() would begin bold type.
        title = re.sub(r"\w*_\w+(\(\))?", r"`\g<0>`", field(r"^// pitfall \w+: (.*)$"))
        outcome, rule = field(r"^//   H200: (.*)$"), field(r"^//   report: (.*)$")
        words = "not measured" if outcome == "not run yet" else outcome
        if re.match(r"cudaError|CUDA_ERROR", words):
            words = f"`{words}`"
        # Measured with another program that makes the same mistake, as the header then says.
        if outcome != "not run yet" and "not been run" in " ".join(header.split()):
            words += " (*)"
            related = True
        report = "not reported" if rule == "none" else f"`{rule}`"
        check = re.search(r"^//   check: (.*)$", header, re.MULTILINE)
        if check:
            report += f" (`EMULATOR_CHECK={check.group(1)}`)"
        program = name[:-len(".cu")]
        rows.append([f"[{program}](pitfalls/{name})", title, words, report])
    header = ["program", "mistake", "what the H200 did", "the emulator reports"]
    text = "\n" + markdown([header] + rows)
    if grouped:
        parts = [(words, [row for row in rows if row[2].startswith(begin)]) for words, begin in SEEN]
        assert sum(len(part) for _, part in parts) == len(rows), "an outcome that SEEN does not have"
        text = "".join(f"\n{words}\n\n" + markdown([header] + part) for words, part in parts if part)
    if related:
        text += "\n(*) seen with another program that makes this mistake, not with this very one.\n"
    return text + "\n"


def measured_text():
    """One line for each chapter that measures; a chapter without its tables is left out."""
    rows, stamps = [], []

    def lines(chapter, name, **where):
        table = read_csv(chapter, name)
        if table is None:
            return []
        stamps.append(re.fullmatch(r"NVIDIA (\w+).*, driver (\S+), (\S+)", table.stamp))
        return [row for row in table.records() if all(row[k] == v for k, v in where.items())]

    def best(some, column):
        return max(some, key=lambda row: float(row[column]))

    def add(chapter, *cells):
        gpu, _, date = stamps[-1].groups()
        rows.append([f"[{chapter[:2]}]({chapter}/)" if chapter else "", *cells, f"{gpu}, {date}"])

    chapter = "03_tma_store"
    copies = lines(chapter, "copy_speed", size="4096 MiB")
    if copies:
        tma = best([r for r in copies if r["way"].startswith("tma")], "GB/s")
        threads = best([r for r in copies if r["way"] in ("scalar", "vectors", "cp_async")], "GB/s")
        plain = [r for r in copies if r["way"] == "tma one stage" and r["tile"] == tma["tile"]][0]
        add(chapter, f"copy of 4 GiB in {tma['tile']} tiles, as a share of `cudaMemcpy`'s rate",
            f"{tma['of cudaMemcpy']} by TMA with few blocks and a hint for L2, {plain['of cudaMemcpy']} without the two",
            f"{threads['of cudaMemcpy']} by threads ({threads['tile']})")
    chapter = "04_store_reduce"
    sums = {r["way"]: r for r in lines(chapter, "accumulate", MiB="4096")}
    if sums:
        add(chapter, "adding to 4 GiB of sums, GB/s", f"{sums['tensor reduce, prefetched']['GB/s']} by reduce with L2 prefetch, "
            f"{sums['tensor reduce']['GB/s']} without",
            f"{sums['red.v4, prefetched']['GB/s']} by `red.v4` with prefetch, {sums['red.v4']['GB/s']} without")
    chapter = "05_multicast"
    reads = {r["kind"]: r for r in lines(chapter, "shared_stream_counters")}
    if reads:
        shared, separate = reads["cluster of 4, multicast"], reads["cluster of 4, separate"]
        add(chapter, f"{shared['into SMs by TMA MiB']} MiB into the SMs of clusters of 4: MiB read from L2",
            f"{shared['read from L2 MiB']} by multicast", f"{separate['read from L2 MiB']} by separate loads")
    chapter = "06_swizzle_3d"
    banks = {r["swizzle"]: r["conflicts counted"] for r in lines(
        chapter, "bank_conflicts", **{"row bytes": "128", "bytes read by a thread": "16"})}
    if banks:
        add(chapter, "bank conflicts of reading a tile by columns, 16 bytes a thread",
            f"{banks['128B']} with the 128-byte swizzle", f"{banks['none']} without")
    chapter = "07_pipelined_gemm/library"
    products = lines(chapter, "versus")
    if products:
        cube = [r for r in products if r["m x n x k"] == "8192 x 8192 x 8192"][0]
        add(chapter, "bf16 product, 8192 x 8192 x 8192, TFLOP/s", f"{cube['by measuring']} by the chapter's library",
            f"{max(cube['cuBLAS'], cube['cuBLASLt best'], key=float)} by the better of cuBLAS and cuBLASLt")
    products = ratios_of_products(lines(chapter, "shapes"))
    if products:
        sizes = {product: [int(size) for size in product.split(" x ")] for product in products}
        readable = {product: products[product] for product, size in sizes.items() if math.prod(size) >= 2048**3 and size[2] % 8 == 0}
        for some, which in [(products, "the same as a ratio, for {} random products drawn after the library's last change"),
                            (readable, "the {} of them with at least 2048^3 multiplications, and rows that TMA can read")]:
            mean = math.exp(sum(map(math.log, some.values())) / len(some))
            lowest = min(some, key=some.get)
            add("", which.format(len(some)), f"geometric mean {mean:.3f}", f"lowest {some[lowest]:.3f} ({lowest})")
    promoted = [r for r in lines(chapter, "features") if r["feature"].startswith("e4m3 promoted")]
    if promoted:
        add("", "e4m3 product, every 128 k added in fp32, 4096 x 4096 x 4096 and 8192 x 8192 x 8192",
            " and ".join(r["ratio"] for r in promoted), "1 is cuBLASLt")
    shares = lines("07_pipelined_gemm/attention", "attention")
    if shares:
        def share(row):
            return f"{row['share']} (head dimension {row['dim']}, {row['mask']}, length {int(row['length']):,})"
        add("", "attention as a share of PyTorch's better backend",
            "lowest " + share(min(shares, key=lambda r: float(r["share"]))), "highest " + share(best(shares, "share")))
    if not rows:
        return None
    return "\n" + markdown([["chapter", "what", "result", "compared with", "measured on"]] + rows) + \
        f"\nDriver {', '.join(sorted({stamp[2] for stamp in stamps}))}. H100 is the 80 GB one with HBM3.\n\n"


def ratios_of_products(times):
    """For each product, by what factor the library's plan by measuring is faster than the best of the libraries."""
    ratios = {}
    for row in times:
        programs = [program.split() for program in row["the programs and their microseconds"].split(";")]
        theirs = min(float(time) for name, time in programs if name.startswith("cublas"))
        ours = next(float(time) for name, time in programs if name.startswith("measured:"))
        ratios[f"{row['m']} x {row['n']} x {row['k']}"] = theirs / ours
    return ratios


def found_text():
    """Each heading of the first three parts of FOUND.md is a bug in the project that it begins with."""
    with open(os.path.join(ROOT, "emulator/FOUND.md"), encoding="utf-8") as file:
        parts = file.read().split("\n## ")[1:4]
    headings = [re.findall(r"^### (.*)$", part, re.MULTILINE) for part in parts]
    seen, lucky, strict = map(len, headings)
    counts = {}
    for heading in sum(headings, []):
        project = re.sub(r" [\d.]+$", "", heading.split(":")[0].split(",")[0]).replace("libcu++ of ", "")
        counts[project] = counts.get(project, 0) + 1
    named = sorted(counts, key=lambda project: (-counts[project], project.lower()))
    confirmed = len(re.findall(r"^Confirmed: ", "\n".join(parts), re.MULTILINE))
    on_gpu = re.findall(r"^H200 \(.*?\): (wrong|right)", parts[0], re.MULTILINE)
    return (f"**{seen + lucky + strict} bugs in public code** so far: {seen} gave wrong results or hung on the emulator (of the "
            f"{len(on_gpu)} that an H200 ran, {on_gpu.count('wrong')} gave wrong results there, too), {lucky} "
            f"break a rule of the PTX ISA and were right by luck, and {strict} are strict findings. The authors have confirmed or "
            f"fixed {confirmed} of them, as far as we know, and none of the others. {', '.join(named[:3])} and {named[3]} "
            f"have most; {len(named) - 4} other projects have the rest.\n")


def time_and_bytes_text():
    """04: rates inside and beyond L2 beside what ncu counted for 256 MiB."""
    rates, counters = (read_csv("04_store_reduce", name) for name in ("accumulate", "accumulate_counters"))
    if rates is None or counters is None:
        return None
    of = {(row["way"], row["MiB"]): row["GB/s"] for row in rates.records() if row["blocks"] == "264"}
    out = [["way", "GB/s, 8 MiB of sums", "GB/s, 256 MiB", "warp instructions", "MiB into SMs", "MiB to and from DRAM"]]
    for row in counters.records():
        moved = float(row["DRAM read MiB"]) + float(row["DRAM write MiB"])
        out.append([row["way"], of[row["way"], "8"], of[row["way"], "256"], f"{int(row['warp instructions']):,}",
                    row["MiB into SMs"], f"{moved:.0f}"])
    return "\n" + markdown(out) + f"\n{rates.notes[0]}\n\n"


def thresholds_text():
    """DECIDE.md: of two ways to do the same work, which to take: the rows of compared.csv, with rates from the chapters' tables."""
    rates, dates = {}, {}

    def take_rates(what, chapter, name, keys, value="GB/s", suffix=""):
        table = read_csv(chapter, name)
        gpu, date = table.stamp.rsplit(", ", 1)
        dates.setdefault(gpu, {}).setdefault(date, {})[what] = True
        for i, row in enumerate(table.records()):
            key = "/".join(row[field] for field in keys) if keys else str(i)
            rates[f"{name}:{key}{suffix}"] = row[value]

    take_rates("copies", "03_tma_store", "copy_speed", ["size", "way", "tile"])
    take_rates("boxes", "06_swizzle_3d", "boxes", ["tensor MiB", "tile rows"], "2D boxes GB/s", "/2D")
    take_rates("boxes", "06_swizzle_3d", "boxes", ["tensor MiB", "tile rows"], "3D box GB/s", "/3D")
    take_rates("sums", "04_store_reduce", "accumulate", ["blocks", "MiB", "way"])
    take_rates("sums", "04_store_reduce", "accumulate_tiles", ["KiB", "way"])
    take_rates("pages", "02_tma_load", "paged_rows", ["way"])
    take_rates("products", "07_pipelined_gemm", "alone", [], "16384^3")

    def words(name):
        """A rate, or "A / B", a ratio."""
        first, _, second = name.partition(" / ")
        if second:
            return f"{float(rates[first]) / float(rates[second]):.2f}"
        return rates[first] if "." in rates[first] else f"{int(rates[first]):,}"

    out = [["work", "tile", "take", "GB/s", "instead of", "GB/s", "ratio", "remark"]]
    for work, tile, take, rate, other, other_rate, remark in Table(os.path.join(ROOT, "common/book/compared.csv")).rows:
        remark = re.sub(r"\{(.*?)\}", lambda match: words(match[1]), remark)
        out.append([work, tile, take, words(rate), other, words(other_rate), words(f"{rate} / {other_rate}"), remark])
    said = ["; ".join([gpu] + [f"{', '.join(what)}: {date}" for date, what in days.items()]) for gpu, days in dates.items()]
    return "\n" + markdown(out) + "".join(f"\n{line}\n" for line in said) + "\n"


def source_part(lines, options, name):
    choice = re.fullmatch(r"\s*from=(\S+) to=(\S+)\s*", options)
    if choice is None:
        sys.exit(f"figures: {name}: say which part of the program: from=WORD to=WORD, not {options.strip()!r}")

    def find(word, start):
        for i in range(start, len(lines)):
            if lines[i].startswith(word[1:]) if word.startswith("^") else word in lines[i]:
                return i
        sys.exit(f"figures: {name}: no line has {word!r} after line {start}")

    first = find(choice[1], 0)
    return lines[first:find(choice[2], first) + 1]


def chosen_lines(lines, choice, name):
    """The lines of "1-12,40", with "..." between stretches."""
    shown, last = [], 0
    for part in choice.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, end = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not last < first <= end <= len(lines):
            sys.exit(f"figures: {name}: lines={choice}: {part!r} is not a range of its {len(lines)} lines that "
                     "goes upwards, such as 1-12,40")
        shown += left_out(lines[last:first - 1]) + lines[first - 1:end]
        last = end
    return shown + left_out(lines[last:])


def left_out(lines):
    """Empty lines go without a word."""
    return ["..."] if any(line.strip() for line in lines) else []


def output_text(chapter, name, options):
    program = name.endswith((".cu", ".cuh"))
    path = os.path.join(ROOT, chapter, name) if program else os.path.join(ROOT, "tests", "recorded", chapter, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n")
    if program:
        return "```cuda\n" + "\n".join(source_part(lines, options, name)) + "\n```\n"
    choice = re.fullmatch(r"\s*(?:lines=(\S+))?\s*", options)
    if choice is None:
        sys.exit(f"figures: {name}: of an output you can only choose lines=, not {options.strip()!r}")
    if choice[1]:
        lines = chosen_lines(lines, choice[1], name)
    return "```text\n" + "\n".join(lines) + "\n```\n"


def fill(readme, chapter):
    """chapter: the folder's name, or "" for the root. Returns how many places were filled."""
    with open(readme, encoding="utf-8") as file:
        old = file.read()
    filled = 0

    def replace(match):
        nonlocal filled
        where, options = match.group(1), match.group(2)
        folder, name = where.rsplit("/", 1) if not chapter and "/" in where else (chapter, where)
        if name == "measured" and not folder:
            text = measured_text()
        elif name == "found" and not folder:
            text = found_text()
        elif name == "time_and_bytes":
            text = time_and_bytes_text()
        elif name == "thresholds":
            text = thresholds_text()
        elif name in ("pitfalls", "asides"):
            text = pitfalls_text(folder, name == "asides", "grouped" in options)
        elif name.endswith((".txt", ".cu", ".cuh")):
            text = output_text(folder, name, options)
        else:
            text = table_text(folder, name, options)
        if text is None:
            print(f"  {os.path.relpath(readme, ROOT)}: {where}: nothing recorded, left as it is")
            return match.group(0)
        filled += 1
        return f"<!-- begin: {where}{options} -->\n{text}<!-- end: {where} -->"

    new = MARKER.sub(replace, old)
    if new != old:
        with open(readme, "w", encoding="utf-8") as file:
            file.write(new)
    return filled


def main():
    if len(sys.argv) < 2:
        print("usage: figures.py CHAPTER...", file=sys.stderr)
        sys.exit(2)
    places = [(os.path.join(ROOT, page), "") for page in ("README.md", "DECIDE.md")]
    for chapter in map(os.path.abspath, sys.argv[1:]):
        pages = sorted(glob.glob(os.path.join(chapter, "*.md"))) + sorted(glob.glob(os.path.join(chapter, "*", "*.md")))
        places += [(page, os.path.relpath(os.path.dirname(page), os.path.dirname(chapter))) for page in pages]
    for readme, chapter in places:
        if os.path.exists(readme):
            count = fill(readme, chapter)
            if count:
                print(f"  {os.path.relpath(readme, ROOT)}: {count} places filled")


main()
