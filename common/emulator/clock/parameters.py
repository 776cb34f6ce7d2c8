#!/usr/bin/env python3
"""parameters.py FOLDER: makes h200.def and measured/*.csv of what measure.sh measured.
parameters.py           makes h200.def again of the files in measured/.

Beside what measure and measure_load print, three numbers say how far the chip's clock drops at its power
limit. They are fitted to what an H200 did in the rungs of the ladder at 8192 x 8192 x 8192: the
clocks and the time of each, how busy its tensor cores were and what it read from L2."""
import csv, os, re, sys

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURED = os.path.join(HERE, "measured")
# Printed, but not a parameter of the model, or one that another way of measuring gives.
DERIVED = {
    # the latencies of 1 KiB, without the time that its rows or bytes take
    "copy_latency": lambda p: p["copy_latency"] - 8 * p["copy_row"],
    "store_latency": lambda p: p["store_latency"] - p["store_read_latency"],
    "store_read_latency": lambda p: p["store_read_latency"] - 1024 / p["store_rate"],
    # what reads and writes of as many bytes take together, over the sum of what each takes alone
    "l2_overlap": lambda p: 2 / p["l2_both_rate"] / (1 / p["l2_rate"] + 1 / p["l2_store_rate"]),
}
# Where each comes from is said in CLOCK.md. record/counters.py computes the first, from what ncu counted, and checks it.
GIVEN = {"sass_per_ptx": 1.19, "l2_share_window": 60, "init_fence": 400}
# What measure_load prints when it runs next, until then from other figures of an H200. The first two are
# differences of medians in measured/measure.txt ("from a block ... at many times"), the others are rounded from
# rungs that noted clock64() (CLOCK.md).
UNTIL_MEASURED = {"store_drain": 320, "cluster_turn": 104,
                  "mbarrier_init": 20, "cluster_start": 800, "first_copy": 400}
AT_POWER_LIMIT = 70  # per cent: rungs whose tensor cores are busier are


def table(name):
    with open(os.path.join(MEASURED, name), newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def solve(rows):
    """Least squares: x with row[:-1] . x nearest to row[-1], by elimination in the normal equations."""
    count = len(rows[0]) - 1
    system = [[sum(r[i] * r[j] for r in rows) for j in range(count + 1)] for i in range(count)]
    for i in range(count):
        system[i] = [value / system[i][i] for value in system[i]]
        for other in range(count):
            if other != i:
                factor = system[other][i]
                system[other] = [a - factor * b for a, b in zip(system[other], system[i])]
    return [row[-1] for row in system]


def fit_frequency():
    reads = {(r["rung"], r["m"], r["k"]): float(r["read from L2 MiB"]) * 2**20 for r in table("ladder_l2.csv")}
    rows = []
    for r in table("ladder.csv"):
        busy = float(r["tensor cores busy %"])
        if r["m"] == r["k"] == "8192" and busy > AT_POWER_LIMIT:
            clocks = float(r["clocks"])
            rows.append([1, -busy / 100, -reads[r["rung"], r["m"], r["k"]] / clocks, clocks / float(r["us"])])
    return dict(zip(("clock_top", "clock_tensor", "clock_l2"), solve(rows)))


def write_parameters():
    parameters = dict(UNTIL_MEASURED)
    with open(os.path.join(MEASURED, "measure.txt")) as file:
        for line in file:
            match = re.match(r"([a-z]\w+) ([\d.e+-]+) ", line)
            if match:
                parameters[match.group(1)] = float(match.group(2))
    derived = {name: rule(parameters) for name, rule in DERIVED.items()}
    parameters = {**parameters, **derived, **GIVEN, **fit_frequency()}
    for name in ("copy_dram_latency", "l2_both_rate", "map_latency"):
        parameters.pop(name, None)
    with open(os.path.join(MEASURED, "ladder.csv")) as file:
        stamp = file.readline().lstrip("# ").strip()
    with open(os.path.join(HERE, "h200.def"), "w") as file:
        file.write(f"/* h200.def: the parameters of the clock, by parameters.py (CLOCK.md).\n * {stamp} */\n")
        for name in sorted(parameters):
            file.write(f"CLOCK({name}, {parameters[name]:.6g})\n")


def counted(folder, name):
    """{rung: {metric: value}} of what ncu printed."""
    metrics = {}
    with open(os.path.join(folder, name), newline="") as file:
        for row in csv.DictReader(line for line in file if line.startswith('"')):
            rung = metrics.setdefault(row["Kernel Name"].split("::")[0], {})
            rung[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return metrics


def write_ladder(folder):
    with open(os.path.join(folder, "gpu.txt")) as file:
        stamp = "# " + file.read().strip()
    times = [[stamp], "rung,m,n,k,us,clocks,tensor cores busy %".split(",")]
    traffic = [[stamp], ("rung,m,n,k,clocks,read from L2 MiB,written to L2 MiB,"
                         "read from device memory MiB").split(",")]
    for name in sorted(os.listdir(folder)):
        if not name.startswith("times_"):
            continue
        metrics = counted(folder, name.replace("times_", "ncu_"))
        with open(os.path.join(folder, name), newline="") as file:
            for rung, m, n, k, us, _ in csv.reader(file):
                of = metrics[rung]
                clocks = f"{of['sm__cycles_elapsed.max']:.0f}"
                busy = of["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"]
                times.append([rung, m, n, k, f"{float(us):.1f}", clocks, f"{busy:.1f}"])
                mebibytes = (of["lts__t_sectors_op_read.sum"] / 2**15, of["lts__t_sectors_op_write.sum"] / 2**15,
                             of["dram__bytes_read.sum"] / 2**20)
                traffic.append([rung, m, n, k, clocks] + [f"{value:.1f}" for value in mebibytes])
    for name, rows in (("ladder.csv", times), ("ladder_l2.csv", traffic)):
        with open(os.path.join(MEASURED, name), "w", newline="") as out:
            out.write(rows[0][0] + "\n")
            csv.writer(out, lineterminator="\n").writerows(rows[1:])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    if len(sys.argv) == 2:
        write_ladder(sys.argv[1])
    write_parameters()
