#!/usr/bin/env python3
"""counters.py: the emulator's counters beside those of ncu, for every lesson.

  counters.py --collect FOLDER     FOLDER/NN_lesson.csv, as ncu --csv writes them -> counters.csv, where they
                                   replace the rows of the same lessons
  counters.py [LESSON...]          runs the lessons (02_dimensions ...; without a name all) on the
                                   emulator, compares them with counters.csv and prints the table of
                                   RECORDING.md; exit code 1 if a counter differs that must not, or,
                                   for all lessons, if RECORDING.md has another table or the clock's
                                   sass_per_ptx is more than 0.02 away

clock/measure.sh collects on a GPU. A kernel of one of the two that the other has not is an error.
"""
import glob, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "common", "book"))
import tables

TABLE = os.path.join(HERE, "counters.csv")
TMA = "l1tex__m_xbar2l1tex_read_bytes_mem_"
OUT = "l1tex__m_l1tex2xbar_write_bytes_mem_"
LSU = "l1tex__t_sectors_pipe_lsu_mem_global_op_"
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
# our counter -> ncu's, whose sum it should be
COUNTERS = {
    "shared read passes": [PASSES + "ld.sum"],
    "shared write passes": [PASSES + "st.sum"],
    "global read sectors": [LSU + "ld.sum"],
    "global write sectors": [LSU + "st.sum"],
    "bytes loaded by TMA": [TMA + "global_op_tma_ld.sum"],
    "bytes stored by TMA": [OUT + "global_op_tma_st.sum"],
    "bytes reduced by TMA": [OUT + "global_op_tma_red.sum"],
    "multiply-adds": ["sm__ops_path_tensor_src_bf16_dst_fp32.sum", "sm__ops_path_tensor_op_hgmma_src_fp16.sum"],
    "thread instructions": ["smsp__thread_inst_executed.sum"],
}
# These are not what the GPU counts: machine code is not PTX.
DIFFERENT = {"thread instructions"}
# Where the GPU counts more passes because something else uses the banks at the same time (RECORDING.md): never fewer.
CONTENDED = {
    "shared read passes": r"02_coordinates load_tiles|04_accumulate accumulate_kernel|07_layouts gemm_|"
                          r"07_small_shapes small_kernel|07_tile_counter sum_tiles",
    "shared write passes": r"07_tma_epilogue tma_epilogue_kernel|07_overlapped_epilogue overlapped_kernel|07_carried_tile carried_kernel|"
                           r"07_pipelined_gemm pipelined_kernel|07_layouts gemm_|"
                           r"07_attention attention_kernel<128>|07_attention_overlap attention_kernel<128>|"
                           r"07_small_shapes small_kernel|07_grouped grouped_kernel|07_tile_counter sum_tiles",
}
# Kernels of which the GPU counts less or more for other reasons, and by how much at most.
OTHER_COUNTS = {("multiply-adds", "07_serialised_wgmma c7512"): 0.5,
                ("shared read passes", "02_paged_rows sum_pages"): 0.004,
                ("bytes loaded by TMA", "07_layouts gemm_single<GemmSingleTile<0,0,0,128,64,1,2,2,0>>"): 0.0001,
                ("bytes loaded by TMA", "07_layouts gemm_single<GemmSingleTile<1,0,0,128,64,1,2,2,0>>"): 0.0001}
# Blocks that ask again and again for the flag of another block, each time reading a sector: on a GPU more often.
POLLING = r"07_layouts gemm_single<GemmSingleTile<(\d+,){7}\d+,[01]>>"
POLLED_SECTORS = 0.1


def kernel_name(text):
    """The kernel and its template arguments, which the two write with other spaces, and true as 1."""
    name = re.sub(r"^void |\(.*", "", text).replace(" ", "")
    return name.replace("false", "0").replace("true", "1")


def total(sums, metrics):
    """None where ncu could not count: a metric that it does not know is n/a, and the others found nothing."""
    values = [sums.get(metric) for metric in metrics]
    known = sum(value for value in values if value is not None)
    return known if known or None not in values else None


def collect(folder):
    with open(os.path.join(folder, "gpu.txt")) as file:
        stamp = file.read().strip()
    names = [name for name in sorted(os.listdir(folder)) if re.match(r"0\d_.*\.csv$", name)]
    table = tables.Table(TABLE)
    before = table.rows if table.header[3:] == list(COUNTERS) else []  # of another set of counters none can stay
    rows = [row for row in before if f"{row[0]}.csv" not in names]
    for name in names:
        kernels, launches = {}, {}
        for row in tables.profile(os.path.join(folder, name)):
            kernel = kernel_name(row["Kernel Name"])
            launches.setdefault(kernel, set()).add(row["ID"])
            sums = kernels.setdefault(kernel, {})
            if row["Metric Value"] != "n/a":
                value = float(row["Metric Value"].replace(",", "") or 0)
                sums[row["Metric Name"]] = sums.get(row["Metric Name"], 0) + value
        for kernel, sums in kernels.items():
            values = {counter: total(sums, metrics) for counter, metrics in COUNTERS.items()}
            # ncu counts both operations, of bf16 and fp16 alone: with e4m3 it finds none.
            values["multiply-adds"] = values["multiply-adds"] / 2 if values["multiply-adds"] else None
            rows.append([name[:-4], kernel, len(launches[kernel])] +
                        ["" if value is None else f"{value:.0f}" for value in values.values()])
    rows.sort(key=lambda row: row[0])
    notes = notes_after(table.notes, [name[:-4] for name in names], stamp) if before else [stamp]
    tables.write(TABLE, [["lesson", "kernel", "launches"] + list(COUNTERS)] + rows, *notes)


def notes_after(notes, lessons, stamp):
    """The first note says where all lessons were measured but those that the others, "LESSON, ...: stamp", name."""
    measured = {lesson: stamp for lesson in lessons}
    for note in notes[1:]:
        names, _, where = note.partition(": ")
        measured = {**{lesson: where for lesson in names.split(", ")}, **measured}
    stamps = sorted({where for where in measured.values() if where != notes[0]})
    return notes[:1] + [", ".join(sorted(lesson for lesson in measured if measured[lesson] == where)) + ": " + where
                        for where in stamps]


def number(text):
    return int(text.replace(",", ""))


PATTERNS = [
    (r"shared reads .* (\S+) passes", "shared read passes"),
    (r"shared writes .* (\S+) passes", "shared write passes"),
    (r"global reads .* (\S+) sectors", "global read sectors"),
    (r"global writes .* (\S+) sectors", "global write sectors"),
    (r"multiply-adds +(\S+)", "multiply-adds"),
    (r"instructions of threads (\S+),", "thread instructions"),
]
COPIES = [(r"(tensor|bulk) load ", "bytes loaded by TMA"), (r"(tensor|bulk) store ", "bytes stored by TMA"),
          (r"(tensor|bulk) reduce ", "bytes reduced by TMA")]


def emulated(lesson):
    """{kernel: {counter: value}} of one run on the emulator."""
    chapter = next(c for c in os.listdir(ROOT) if c.startswith(lesson[:3]) and os.path.isdir(os.path.join(ROOT, c)))
    source = [*glob.glob(f"{ROOT}/{chapter}/{lesson[3:]}.cu"), *glob.glob(f"{ROOT}/{chapter}/*/{lesson[3:]}.cu")][0]
    program = os.path.join(ROOT, "build", os.path.relpath(source[:-3], ROOT))
    environment = dict(os.environ, EMULATOR_COUNT="1", EMULATOR_CHECK="off")
    run = subprocess.run([os.path.join(ROOT, "emulator/emulate"), program], env=environment,
                         capture_output=True, text=True, cwd=ROOT, check=False)
    kernels, counters = {}, {}
    for line in run.stderr.splitlines():
        begins = re.match(r"emulator: counted in kernel (.*), launches (\S+), clusters", line)
        if begins:
            counters = kernels.setdefault(kernel_name(begins.group(1)), {})
            counters["launches"] = counters.get("launches", 0) + number(begins.group(2))
            continue
        for pattern, counter in PATTERNS:
            match = re.search(pattern, line)
            if match:
                counters[counter] = counters.get(counter, 0) + number(match.group(1))
        for pattern, counter in COPIES:
            match = re.match("  " + pattern, line)
            if match:
                moved = re.search(r"moved (\S+) bytes", line)
                amounts = [moved] if moved else re.finditer(r"(?:copies, |saved )(\S+) bytes", line)
                counters[counter] = counters.get(counter, 0) + sum(number(m.group(1)) for m in amounts)
    return kernels


def compare(lessons):
    """[(lesson, kernel, counter, ours, ncu's)] wherever one of the two is not 0 and ncu could count."""
    found = []
    rows = tables.records(TABLE)
    for lesson in sorted({row["lesson"] for row in rows}):
        if lessons and lesson not in lessons:
            continue
        kernels = emulated(lesson)
        theirs = {row["kernel"]: row for row in rows if row["lesson"] == lesson}
        for kernel in sorted(set(kernels) | set(theirs)):
            ours, row = kernels.get(kernel, {}), theirs.get(kernel, {})
            if ours.get("launches", 0) != int(row.get("launches", 0)):
                found.append((lesson, kernel, "launches", ours.get("launches", 0), int(row.get("launches", 0))))
                continue
            for counter in COUNTERS:
                if row[counter] and (ours.get(counter, 0) or int(row[counter])):
                    found.append((lesson, kernel, counter, ours.get(counter, 0), int(row[counter])))
    return found


def table(found):
    lines = ["| counter | kernels | equal | the others: ours over ncu's |", "|---|---:|---:|---|"]
    for counter in COUNTERS:
        pairs = [f for f in found if f[2] == counter]
        unequal = [f for f in pairs if f[3] != f[4]]
        ratios = sorted(f[3] / f[4] if f[4] else float("inf") for f in unequal)
        others = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {ratios[len(ratios) // 2]:.2f}" if ratios else ""
        lines.append(f"| {counter} | {len(pairs)} | {len(pairs) - len(unequal)} | {others} |")
    return "\n".join(lines)


def sass_per_ptx(found):
    sums = {}
    for lesson, _, counter, ours, theirs in found:
        if counter == "thread instructions":
            before = sums.get(lesson, (0, 0))
            sums[lesson] = before[0] + ours, before[1] + theirs
    return sum(theirs / ours for ours, theirs in sums.values()) / len(sums)


def is_wrong(lesson, kernel, counter, ours, theirs):
    if ours == theirs or counter in DIFFERENT:
        return False
    name = f"{lesson} {kernel}"
    if (counter, name) in OTHER_COUNTS:
        return abs(ours - theirs) > OTHER_COUNTS[counter, name] * ours
    if counter == "global read sectors" and re.match(POLLING, name):
        return not 0 < theirs - ours <= POLLED_SECTORS * theirs
    return not (counter in CONTENDED and re.match(CONTENDED[counter], name) and ours < theirs)


def main(arguments):
    if arguments[:1] == ["--collect"]:
        collect(arguments[1])
        return 0
    found = compare(arguments)
    if not found:
        print(f"counters.csv has nothing for {' '.join(arguments)}")
        return 1
    print(table(found))
    wrong = [f for f in found if is_wrong(*f)]
    for lesson, kernel, counter, ours, theirs in wrong:
        print(f"WRONG {lesson} {kernel}: {counter}: {ours}, ncu {theirs}")
    stale = False
    if not arguments:
        mean = sass_per_ptx(found)
        print(f"sass_per_ptx {mean:.2f}: the mean over all lessons of ncu's thread instructions over ours")
        with open(os.path.join(ROOT, "emulator/clock/h200.def")) as file:
            used = float(re.search(r"CLOCK\(sass_per_ptx, ([0-9.]+)\)", file.read())[1])
            if abs(used - mean) > 0.02:
                print(f"h200.def has {used} for sass_per_ptx: change it in parameters.py")
                stale = True
        with open(os.path.join(HERE, "RECORDING.md")) as file:
            if table(found) not in file.read():
                print("RECORDING.md has another table")
                stale = True
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
