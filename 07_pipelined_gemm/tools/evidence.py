#!/usr/bin/env python3
"""evidence.py FILE.csv NCU.csv: what holds each rung of the ladder back, by the emulator's clock, on a GPU and by ncu; and
five counters of ncu."""
import csv
import os
import re
import subprocess
import sys

RUNGS = ["tiled", "serial", "ring", "producer_consumer", "two_consumers", "multicast", "persistent",
         "tma_epilogue", "overlapped_epilogue", "carried_tile", "pipelined_gemm"]
TIMED = ("--m", "4096", "--n", "4096", "--k", "1024")
BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
BYTES = "l1tex__m_xbar2l1tex_read_bytes.sum"
SECTORS = "lts__t_sectors_srcunit_tex_op_read.sum"  # read by SMs
DRAM, ISSUED, CLOCKS = "dram__bytes_read.sum", "sm__inst_executed.sum", "sm__cycles_elapsed.max"
CLOCK = {"EMULATOR_CLOCK": "h200", "EMULATOR_MATH": "skip", "EMULATOR_CHECK": "off"}


def output(*command, **environment):
    run = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def counted(program, size="4096"):
    text = output("ncu", "--clock-control", "none", "--cache-control", "none", "--csv", "--print-units", "base",
                  "--metrics", ",".join((BUSY, BYTES, SECTORS, DRAM, ISSUED, CLOCKS)), program, "--m", size, "--n", size, "--k", size,
                  "--no-check")
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    return {row["Metric Name"]: float(row["Metric Value"].replace(",", "")) for row in rows}


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: evidence.py FILE.csv NCU.csv")
    with open(sys.argv[1], "w", newline="", encoding="utf-8") as file, open(sys.argv[2], "w", newline="", encoding="utf-8") as ncu:
        table, counters = csv.writer(file, lineterminator="\n"), csv.writer(ncu, lineterminator="\n")
        counters.writerow(["rung", "tensor cores busy %", "thousand clocks", "GB into the SMs", "GB from L2", "GB from device memory",
                           "million warp instructions", "busy % at 8192^3"])
        table.writerow(["rung", "4096 x 4096 x 1024: us, clock", "us, measured", "4096^3: tensor cores busy %, ncu",
                        "GB into the SMs, ncu"])
        for rung in RUNGS:
            program = f"build/07_pipelined_gemm/{rung}"
            modelled = re.search(r"clocks, ([0-9.]+) us", output("emulator/emulate", program, *TIMED, "--no-check", **CLOCK))
            measured = re.search(r" in ([0-9.]+) ms", output(program, "--bench", *TIMED))
            values = counted(program)
            busy, size = f"{values[BUSY]:.1f}", f"{values[BYTES] / 1e9:.2f}"
            table.writerow([rung, modelled[1], f"{1000 * float(measured[1]):.0f}", busy, size])
            counters.writerow([rung, busy, f"{values[CLOCKS] / 1e3:.0f}", size, f"{values[SECTORS] * 32 / 1e9:.2f}",
                               f"{values[DRAM] / 1e9:.2f}", f"{values[ISSUED] / 1e6:.1f}",
                               f"{counted(program, '8192')[BUSY]:.1f}"])


if __name__ == "__main__":
    main()
