#!/usr/bin/env python3
"""counters.py: the emulator's counters beside those of ncu, for every lesson.

  counters.py --collect FOLDER     FOLDER/NN_lesson.csv, as ncu --csv writes them -> counters.csv
  counters.py [LESSON...]          runs the lessons (02_ranks ...; without a name all) on the
                                   emulator, compares them with counters.csv and prints the table of
                                   RECORDING.md; exit code 1 if a counter differs that must not, or,
                                   for all lessons, if RECORDING.md has another table

clock/measure.sh collects on a GPU. Only the figures of kernels that both have are compared.
"""
import csv, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
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
    "multiply-adds": [f"sm__ops_path_tensor_src_{type}_dst_fp32.sum" for type in ("bf16", "fp16")],
    "thread instructions": ["smsp__thread_inst_executed.sum"],
}
# These are not what the GPU counts: machine code is not PTX.
DIFFERENT = {"thread instructions"}
# ncu's numbers change from run to run here (RECORDING.md).
CONTENDED = {("02_coordinates", "shared read passes"), ("07_overlapped_epilogue", "shared write passes"),
             ("07_small_shapes", "shared read passes")}
PLAIN_KERNEL = re.compile(r"^(void )?([\w:]+)")


def kernel_name(text):
    match = PLAIN_KERNEL.match(text)
    return match.group(2) if match else text


def collect(folder):
    with open(os.path.join(folder, "gpu.txt")) as file:
        stamp = file.read().strip()
    rows = [["lesson", "kernel", "launches"] + list(COUNTERS)]
    for name in sorted(os.listdir(folder)):
        if not re.match(r"0\d_.*\.csv$", name):
            continue
        kernels, launches = {}, {}
        with open(os.path.join(folder, name), newline="") as file:
            for row in csv.DictReader(line for line in file if line.startswith('"')):
                kernel = kernel_name(row["Kernel Name"])
                launches.setdefault(kernel, set()).add(row["ID"])
                sums = kernels.setdefault(kernel, {})
                value = float(row["Metric Value"].replace(",", "") or 0)
                sums[row["Metric Name"]] = sums.get(row["Metric Name"], 0) + value
        for kernel, sums in kernels.items():
            values = [sum(sums.get(metric, 0) for metric in metrics) for metrics in COUNTERS.values()]
            values[list(COUNTERS).index("multiply-adds")] /= 2  # ncu counts both operations
            rows.append([name[:-4], kernel, len(launches[kernel])] + [f"{v:.0f}" for v in values])
    with open(TABLE, "w", newline="") as file:
        file.write(f"# {stamp}\n")
        csv.writer(file, lineterminator="\n").writerows(rows)


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
    program = os.path.join(ROOT, "build", chapter, lesson[3:])
    environment = dict(os.environ, EMULATOR_COUNT="1", EMULATOR_CHECK="off")
    run = subprocess.run([os.path.join(ROOT, "common/emulator/emulate"), program], env=environment,
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
    """[(lesson, kernel, counter, ours, ncu's)] wherever one of the two is not 0."""
    found = []
    with open(TABLE, newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for lesson in sorted({row["lesson"] for row in rows}):
        if lessons and lesson not in lessons:
            continue
        kernels = emulated(lesson)
        for row in rows:
            ours = kernels.get(row["kernel"])
            if row["lesson"] != lesson or ours is None or ours["launches"] != int(row["launches"]):
                continue
            for counter in COUNTERS:
                pair = ours.get(counter, 0), int(row[counter])
                if any(pair):
                    found.append((lesson, row["kernel"], counter) + pair)
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


def main(arguments):
    if arguments[:1] == ["--collect"]:
        collect(arguments[1])
        return 0
    found = compare(arguments)
    if not found:
        print(f"counters.csv has nothing for {' '.join(arguments)}")
        return 1
    print(table(found))
    wrong = [f for f in found if f[3] != f[4] and f[2] not in DIFFERENT and (f[0], f[2]) not in CONTENDED]
    for lesson, kernel, counter, ours, theirs in wrong:
        print(f"WRONG {lesson} {kernel}: {counter}: {ours}, ncu {theirs}")
    stale = False
    if not arguments:
        with open(os.path.join(HERE, "RECORDING.md")) as file:
            stale = table(found) not in file.read()
        if stale:
            print("RECORDING.md has another table")
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
