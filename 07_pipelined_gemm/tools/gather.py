#!/usr/bin/env python3
"""gather.py: puts what sweep measured into a table with a line for each product and a column for each configuration.

    gather.py "NVIDIA H200, driver 580.159.04, 2026-11-23; ..." large.csv medium.csv > measured/streamed.csv

The first argument is the comment of the first line. A configuration that a sweep did not know has a minus for its products. A
product that was measured several times has the last times. If some products were measured with epilogues, `--epilogues` before the comment leaves out the others, and each of these has four
lines: plain, beta, gelu and fp32.
"""
import csv
import os
import re
import sys

CONFIGURATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "product", "gemm_configurations.cuh")
PREFIXES = {"CARRY": "carry_", "PERSISTENT": "persistent_", "SINGLE": "single_", "LARGE": "single_",
            "SHORT": "short_"}


def known_names():
    """In the order of gemm_configurations.cuh, which is that of the model. Others are left out."""
    with open(CONFIGURATIONS) as file:
        found = re.findall(r'GEMM_(CARRY|PERSISTENT|SINGLE|LARGE|SHORT)(_SWAPPED)?\([^")]*"([^"]+)"\)', file.read())
    return [PREFIXES[kind] + name + ("_swapped" if swapped else "") for kind, swapped, name in found]


def main():
    arguments = sys.argv[1:]
    with_epilogues = arguments[:1] == ["--epilogues"]
    comment, *paths = arguments[with_epilogues:]
    products, names = {}, known_names()
    for path in paths:
        with open(path) as file:
            rows = list(csv.DictReader(file))
            absent = dict.fromkeys(set(names) - {row["program"].split(":")[-1] for row in rows}, "-")
            for row in rows:
                epilogue, name = (["plain"] + row["program"].split(":"))[-2:]
                product = products.setdefault((int(row["m"]), int(row["n"]), int(row["k"])), {}).setdefault(epilogue, dict(absent))
                product[name] = row["microseconds"]
    columns = ["cublas"] + names
    print("# " + comment)
    print(",".join(["m", "n", "k"] + ["epilogue"] * with_epilogues + columns))
    for shape, product in products.items():
        if with_epilogues and len(product) == 1:
            continue
        for epilogue in product if with_epilogues else ["plain"]:
            values = [product[epilogue].get(name, "") for name in columns]
            print(",".join([*map(str, shape), *[epilogue] * with_epilogues, *values]))


if __name__ == "__main__":
    main()
