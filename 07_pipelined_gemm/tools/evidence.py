#!/usr/bin/env python3
"""evidence.py NCU.csv: what holds each rung of the ladder back: six counters of ncu, and times on a GPU and by the emulator's clock."""
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
    if len(sys.argv) != 2:
        sys.exit("usage: evidence.py NCU.csv")
    with open(sys.argv[1], "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["rung", "busy %", "thousand clocks", "GB into the SMs", "GB from L2", "GB from device memory",
                        "million warp instructions", "busy %, 8192^3", "us, k = 1024", "by the clock"])
        for rung in RUNGS:
            program = f"build/07_pipelined_gemm/{rung}"
            modelled = re.search(r"clocks, ([0-9.]+) us", output("emulator/emulate", program, *TIMED, "--no-check", **CLOCK))
            measured = re.search(r" in ([0-9.]+) ms", output(program, "--bench", *TIMED))
            values, large = counted(program), counted(program, "8192")
            table.writerow([rung, f"{values[BUSY]:.1f}", f"{values[CLOCKS] / 1e3:.0f}", f"{values[BYTES] / 1e9:.2f}",
                            f"{values[SECTORS] * 32 / 1e9:.2f}", f"{values[DRAM] / 1e9:.2f}", f"{values[ISSUED] / 1e6:.1f}",
                            f"{large[BUSY]:.1f}", f"{1000 * float(measured[1]):.0f}", modelled[1]])


if __name__ == "__main__":
    main()
