#!/usr/bin/env python3
"""parameters.py FOLDER: makes h200.def and measured/ladder.csv of what measure.sh measured.

Beside what measure prints, three numbers say how far the chip's clock drops at its power limit: they
are fitted to the rungs' clocks (ncu) and times at 8192 x 8192 x 8192."""
import csv, os, re, sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Printed by measure, but not a parameter of the model, or one that another way of measuring gives.
DERIVED = {
    # the latencies of 1 KiB, without the time that its rows or bytes take
    "copy_latency": lambda p: p["copy_latency"] - 8 * p["copy_row"],
    "store_latency": lambda p: p["store_latency"] - p["store_read_latency"],
    "store_read_latency": lambda p: p["store_read_latency"] - 1024 / p["store_rate"],
}
# Not measured by measure.cu: where each comes from is said in CLOCK.md.
GIVEN = {"sass_per_ptx": 1.19, "l2_bytes": 53000000, "l2_share_window": 60, "mbarrier_ready": 33.5,
         "clock_top": 2200, "clock_tensor": 520, "clock_l2": 0.0326}


def main(folder):
    parameters = {}
    with open(os.path.join(HERE, "measured/measure.txt")) as file:
        for line in file:
            match = re.match(r"([a-z]\w+) ([\d.e+-]+) ", line)
            if match:
                parameters[match.group(1)] = float(match.group(2))
    derived = {name: rule(parameters) for name, rule in DERIVED.items()}
    parameters = {**parameters, **derived, **GIVEN}
    parameters.pop("copy_dram_latency", None)
    with open(os.path.join(folder, "gpu.txt")) as file:
        stamp = file.read().strip()
    with open(os.path.join(HERE, "h200.def"), "w") as file:
        file.write(f"/* h200.def: the parameters of the clock, by measure.sh (CLOCK.md).\n * {stamp} */\n")
        for name in sorted(parameters):
            file.write(f"CLOCK({name}, {parameters[name]:.10g})\n")
    with open(os.path.join(HERE, "measured/ladder.csv"), "w", newline="") as out:
        out.write(f"# {stamp}\nrung,m,n,k,us,clocks,tensor cores busy %\n")
        for name in sorted(os.listdir(folder)):
            if name.startswith("times_"):
                write_rungs(folder, name, out)
    return 0


def write_rungs(folder, name, out):
    counted = {}
    with open(os.path.join(folder, name.replace("times_", "ncu_")), newline="") as file:
        for row in csv.DictReader(line for line in file if line.startswith('"')):
            rung = row["Kernel Name"].split("::")[0]
            counted.setdefault(rung, {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    with open(os.path.join(folder, name), newline="") as file:
        for rung, m, n, k, us, _ in csv.reader(file):
            clocks = counted[rung]["sm__cycles_elapsed.max"]
            busy = counted[rung]["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"]
            out.write(f"{rung},{m},{n},{k},{float(us):.1f},{clocks:.0f},{busy:.1f}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
