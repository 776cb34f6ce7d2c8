#!/usr/bin/env python3
"""versus_table.py: what bench_shapes measured, as the table of the README: TFLOP/s of the libraries and of
pipelined_gemm, and the ratio to the better library; for the configuration that the model chooses and, if it was
measured too, for that of the measured plan.

    versus_table.py shapes.csv versus.csv
"""
import csv
import sys

from plot_shapes import PLANS, times_of_shapes

COLUMNS = {"chosen": ("pipelined_gemm", "ratio", "configuration"),
           "measured": ("measured plan", "measured ratio", "measured configuration")}


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: versus_table.py shapes.csv versus.csv")
    products = times_of_shapes(sys.argv[1])
    plans = [plan for plan in PLANS if any(name.startswith(plan + ":") for times in products.values() for name in times)]
    with open(sys.argv[2], "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow("m x n x k,L2,cuBLAS,cuBLASLt best".split(",") + [c for plan in plans for c in COLUMNS[plan]])
        for (m, n, k), times in products.items():
            cublas = times["cublas"]
            cublaslt = min((t for p, t in times.items() if p.startswith("cublaslt")), default=cublas)
            work = 2e-6 * m * n * k
            row = [f"{m} x {n} x {k}", "hot", f"{work / cublas:.1f}", f"{work / cublaslt:.1f}"]
            for plan in plans:
                name, ours = next(item for item in times.items() if item[0].startswith(plan + ":"))
                row += [f"{work / ours:.1f}", f"{min(cublas, cublaslt) / ours:.3f}", name.split(":")[1]]
            table.writerow(row)


if __name__ == "__main__":
    main()
