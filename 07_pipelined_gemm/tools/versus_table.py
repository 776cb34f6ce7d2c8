#!/usr/bin/env python3
"""versus_table.py: what bench_shapes measured, as the table of the README: TFLOP/s of the libraries
and of pipelined_gemm, and the ratio to the better library.

    versus_table.py shapes.csv versus.csv
"""
import csv
import sys

from plot_shapes import times_of_shapes


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: versus_table.py shapes.csv versus.csv")
    with open(sys.argv[2], "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow("m x n x k,L2,cuBLAS,cuBLASLt best,pipelined_gemm,ratio,configuration".split(","))
        for (m, n, k), times in times_of_shapes(sys.argv[1]).items():
            name, ours = next(item for item in times.items() if item[0].startswith("chosen:"))
            cublas = times["cublas"]
            cublaslt = min((t for p, t in times.items() if p.startswith("cublaslt")), default=cublas)
            rates = [f"{2e-6 * m * n * k / time:.1f}" for time in (cublas, cublaslt, ours)]
            table.writerow([f"{m} x {n} x {k}", "hot", *rates, f"{min(cublas, cublaslt) / ours:.3f}",
                            name.split(":")[1]])


if __name__ == "__main__":
    main()
