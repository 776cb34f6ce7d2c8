#!/usr/bin/env python3
"""alone.py FILE.csv: what multicast gains: two rungs as they are and in clusters of one, where a block loads all of B
itself, in turns on a hot chip; and the bytes from L2 by ncu, if that is installed. Needs nvcc and build/common."""
import csv
import os
import re
import shutil
import subprocess
import sys

from evidence import SECTORS, counted

HERE, BUILT = "07_pipelined_gemm", "build/07_pipelined_gemm/alone"
RUNGS = ["persistent", "pipelined_gemm"]
COMPILE = [os.environ.get("NVCC", "nvcc"), "-std=c++14", "-O3", "-cudart", "shared", "-gencode", "arch=compute_90a,code=sm_90a",
           "-Icommon", f"-I{HERE}"]


def change(text, *changes):
    for pattern, by in changes:
        text, count = re.subn(pattern, by, text, flags=re.S)
        if count != 1:
            sys.exit(f"alone.py: '{pattern}' is {count} times where it should be once")
    return text


def write(name, *changes, source):
    with open(f"{HERE}/{source}.cu", encoding="utf-8") as file, open(f"{BUILT}/{name}.cu", "w", encoding="utf-8") as out:
        out.write(change(file.read(), *changes))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: alone.py FILE.csv")
    os.makedirs(BUILT, exist_ok=True)
    for rung in RUNGS:
        write(rung, source=rung)
        write(f"{rung}_alone", (r"\bCLUSTER = 2,", "CLUSTER = 1,"), (r"order\.by_columns = 1;", "order.by_columns = 0;"),
              (r"tma_load_2d_multicast\(([^;]*),\s*cluster_mask_all\(CLUSTER\)\);", r"tma_load_2d(\1);"), source=rung)
    names = [name for rung in RUNGS for name in (rung, f"{rung}_alone")]
    write("bench_alone", (r"namespace tiled \{.*(?=namespace pipelined \{)",
                          "".join(f'namespace the_{name} {{\n#include "{name}.cu"\n}}\n' for name in names)),
          (r"(Rung rungs\[\] = \{).*?\};",
           "\\1" + ", ".join(f'{{"{n}", the_{n}::gemm_prepare, the_{n}::gemm_launch}}' for n in names) + "};"),
          (r'(?<=ladder = open_csv\(")[^"]*', f"{BUILT}/alone.csv"), (r'(?<=small = open_csv\(")[^"]*', f"{BUILT}/small.csv"),
          source="bench_ladder")
    built = [subprocess.Popen([*COMPILE, "-o", f"{BUILT}/{name}", f"{BUILT}/{name}.cu", "build/common/libcommon.a", "-lcublas",
                               "-lcublasLt"]) for name in [*names, "bench_alone"]]
    if any(compiler.wait() for compiler in built):
        sys.exit(1)
    subprocess.run([f"{BUILT}/bench_alone", "--bench"], check=True)
    with open(f"{BUILT}/alone.csv", encoding="utf-8") as file, open(sys.argv[1], "w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["TFLOP/s", "4096^3", "6144^3", "8192^3", "16384^3", "4096^3: GB from L2"])
        for row in csv.reader(file):
            if row[0] in names:
                bytes_read = f"{counted(f'{BUILT}/{row[0]}')[SECTORS] * 32 / 1e9:.2f}" if shutil.which("ncu") else ""
                table.writerow(["in clusters of one" if row[0].endswith("_alone") else row[0], *row[1:5], bytes_read])


if __name__ == "__main__":
    main()
