#!/usr/bin/env python3
"""parameters.py FOLDER: makes h200.def and measured/*.csv of what measure.sh measured.
parameters.py           makes h200.def again of the files in measured/.

A parameter is the median of what measure and measure_load printed in several runs. Beside them, three
numbers say how far the chip's clock drops at its power limit. They are fitted to what an H200 did in the
rungs of the ladder at 8192 x 8192 x 8192: the clocks and the time of each, how busy its tensor cores were
and what it read from L2."""
import os, re, statistics, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "common", "book"))
import tables

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
GIVEN = {"sass_per_ptx": 1.19}
MOST_DELAY = 800  # clocks, in measure_share
AT_POWER_LIMIT = 70  # per cent: rungs whose tensor cores are busier are


def table(name):
    return tables.records(os.path.join(MEASURED, name))


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


def share_window():
    """How long after one SM another can ask and still share the answer: between the longest delay at which
    L2 served only one of the two, and the next one, on either side."""
    sectors = {int(r["delay"]): int(r["sectors read from L2"]) for r in table("share.csv")}
    limit = (min(sectors.values()) + max(sectors.values())) / 2
    shared = [delay for delay in sectors if sectors[delay] < limit]
    step = min(abs(delay - shared[0]) for delay in sectors if delay != shared[0])
    return {"l2_share_window": (max(shared) - min(shared) + step) / 2}


def write_parameters():
    runs = {}
    with open(os.path.join(MEASURED, "measure.txt")) as file:
        for line in file:
            match = re.match(r"([a-z]\w+) ([\d.e+-]+) ", line)
            if match:
                runs.setdefault(match.group(1), []).append(float(match.group(2)))
    parameters = {name: statistics.median(values) for name, values in runs.items()}
    derived = {name: rule(parameters) for name, rule in DERIVED.items()}
    parameters = {**parameters, **derived, **GIVEN, **fit_frequency(), **share_window()}
    del parameters["l2_both_rate"]  # a part of l2_overlap
    stamp = tables.Table(os.path.join(MEASURED, "ladder.csv")).notes[0]
    with open(os.path.join(HERE, "h200.def"), "w") as file:
        file.write(f"/* h200.def: the parameters of the clock, by parameters.py (CLOCK.md).\n * {stamp} */\n")
        for name in sorted(parameters):
            file.write(f"CLOCK({name}, {parameters[name]:.6g})\n")


def counted(folder, name):
    """{rung: {metric: value}} of what ncu printed."""
    metrics = {}
    for row in tables.profile(os.path.join(folder, name)):
        rung = metrics.setdefault(row["Kernel Name"].split("::")[0], {})
        rung[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return metrics


def stamp_of(folder):
    with open(os.path.join(folder, "gpu.txt")) as file:
        return file.read().strip()


def write_table(name, stamp, rows):
    tables.write(os.path.join(MEASURED, name), rows, stamp)


def write_share(folder):
    """The launches of measure_share in turn: the first one brings the lines into L2."""
    rows = tables.profile(os.path.join(folder, "share.csv"))[1:]
    first, step = -MOST_DELAY, 2 * MOST_DELAY // (len(rows) - 1)
    write_table("share.csv", stamp_of(folder), [["delay", "sectors read from L2"]] + [
        [first + i * step, row["Metric Value"].replace(",", "")] for i, row in enumerate(rows)])


def write_ladder(folder):
    stamp = stamp_of(folder)
    times = ["rung,m,n,k,us,clocks,tensor cores busy %".split(",")]
    traffic = [("rung,m,n,k,clocks,read from L2 MiB,written to L2 MiB,"
                "read from device memory MiB").split(",")]
    for name in sorted(os.listdir(folder)):
        if not name.startswith("times_"):
            continue
        metrics = counted(folder, name.replace("times_", "ncu_"))
        for rung, m, n, k, us, _ in tables.lines(os.path.join(folder, name)):
            of = metrics[rung]
            clocks = f"{of['sm__cycles_elapsed.max']:.0f}"
            busy = of["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"]
            times.append([rung, m, n, k, f"{float(us):.1f}", clocks, f"{busy:.1f}"])
            mebibytes = (of["lts__t_sectors_op_read.sum"] / 2**15, of["lts__t_sectors_op_write.sum"] / 2**15,
                         of["dram__bytes_read.sum"] / 2**20)
            traffic.append([rung, m, n, k, clocks] + [f"{value:.1f}" for value in mebibytes])
    for name, rows in (("ladder.csv", times), ("ladder_l2.csv", traffic)):
        write_table(name, stamp, rows)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    if len(sys.argv) == 2:
        write_ladder(sys.argv[1])
        write_share(sys.argv[1])
    write_parameters()
