#!/usr/bin/env python3
"""fit_model.py: fits the model of product/gemm_choose.cuh to measured/configurations.csv and writes
product/gemm_measured.cuh: the model's numbers, and how far it is off at every measured product.
Needs numpy and scipy; nothing else in this repository does. Takes about a minute.

    python3 07_pipelined_gemm/tools/fit_model.py
"""
import csv
import math
import os
import re

import numpy as np
from scipy.optimize import least_squares

CHAPTER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NEIGHBOURS, NEARNESS, CAUTION = 16, 0.1, 0.6  # chosen by leaving each product out in turn
# Where the fit begins. Times in microseconds, rates in megabytes a microsecond (bytes of an SM: in
# bytes a clock).
START = {"launch": 2.2, "round": 1.5, "tile_end": 0.35, "tile_store": 0.6, "tensor": 1.0,
         "sm_bytes": 45, "latency": 0.9, "l2": 5.0, "split_line": 1.35, "memory": 3.6,
         "output": 3.0, "uneven_rows": 0.5, "copy_bytes": 1.5, "copy": 2.5, "split_k": 0.8,
         "split_sum": 1.0, "shared_tiles": 1.5, "overlap": 4.0, "persistent": 0.5, "l2_bytes": 45.0}
CLOCKS = 1700.0
SMS, SUM_STEPS, LEAST_STEPS = 132, 9, 4


def persistent_stages():
    """Of the ring, by configuration: the sixth argument in gemm_configurations.cuh."""
    with open(os.path.join(CHAPTER, "product", "gemm_configurations.cuh")) as file:
        found = re.findall(r'GEMM_PERSISTENT\((?:\d+, ){5}(\d+), \d+, "([^"]+)"\)', file.read())
    return {"persistent_" + name: int(stages) for stages, name in found}


PERSISTENT_STAGES = persistent_stages()


def up(a, b):
    return -(-a // b)


class Configuration:
    def __init__(self, name):
        found = re.match(r"(persistent|single)_(\d+)x(\d+)(?:_(\d)x(\d))?(?:_split_(\d))?(?:/(\d))?$",
                         name)
        kind, *numbers = found.groups()
        self.name, self.persistent = name, kind == "persistent"
        (self.m, self.n, self.cluster_m, self.cluster_n, self.split,
         self.ctas) = [int(x or 1) for x in numbers]

    def stages(self, steps):
        if self.persistent:
            return PERSISTENT_STAGES[self.name]
        parts = (self.split - 1) * (self.n // self.split // 8) * self.m * 2 * 16
        fixed = 1216 + (parts or 16)
        room = (228 * 1024 // self.ctas - 1024 - fixed) // ((self.m + self.n) * 128)
        return min(12, room, up(steps, self.split))


def shared(tiles, steps, workers):
    """tile_shares() of tile_shares.cuh: whole tiles, then the steps of the rest; is it shared?"""
    whole, left = divmod(tiles, workers)
    rest, is_shared = (steps, False) if left else (0, False)
    for sharers in range(left + 1, workers + 1) if left else []:
        each = up(left * steps, sharers)
        cost = each + up(steps, each) * SUM_STEPS
        if each >= 2 * LEAST_STEPS and cost < rest:
            rest, is_shared = cost, True
    return whole * steps + rest, whole + (left > 0), is_shared


def terms(c, m, n, k):
    """What the formula of gemm_predict() is about, for one configuration and product."""
    steps, cluster = up(k, 64), c.cluster_m * c.cluster_n * c.split
    at_once = (SMS if cluster < 4 else SMS * 10 // 11) // cluster  # clusters that run at once
    rows, columns = up(m, c.m * c.cluster_m), up(n, c.n * c.cluster_n)
    tiles, area = rows * columns, c.m * c.n
    if c.persistent:
        busy, ends, is_shared = shared(tiles, steps, at_once)
        rounds = resident = 1
    else:
        ends = up(tiles, at_once)
        busy, is_shared = ends * up(steps, c.split), False
        rounds, resident = up(tiles, at_once * c.ctas), min(c.ctas, ends)
    copied = k % 8 != 0
    return [busy, area / 32 / CLOCKS,
            (min(c.m, m) / c.cluster_n + c.n / c.cluster_m) * 128 / CLOCKS,
            c.stages(steps) * resident, ends, rounds, is_shared,
            m * k * 2 * columns + n * k * 2 * rows, (not copied) and k % 64 != 0,
            (m * k + n * k) * 2, m * n * 2, n % 8 != 0, copied,
            math.log2(c.split), area / 32768 * (1 - 1 / c.split), c.persistent,
            area * 2 / c.split / 65536]


def predict(theta, x, which, count):
    p = dict(zip(START, np.exp(theta[:len(START)])))
    step_factor = np.exp(theta[len(START):len(START) + count])[which]
    start_factor = np.exp(theta[len(START) + count:])[which]
    (busy, tensor, loaded, in_flight, ends, rounds, is_shared, through_l2, split_line, inputs, output,
     uneven, copied, splits, split_sum, persistent, store) = x.T
    over, lines = p["overlap"], 1 + split_line * (p["split_line"] - 1)
    longest = lambda *t: sum(v ** over for v in t) ** (1 / over)
    step = step_factor * longest(tensor * p["tensor"], loaded * lines / p["sm_bytes"],
                                 p["latency"] / in_flight)
    ragged = 1 + uneven * p["uneven_rows"]
    body = longest(busy * step, through_l2 * lines / (p["l2"] * 1e6),
                   np.maximum(inputs + output - p["l2_bytes"] * 1e6, 0) / (p["memory"] * 1e6),
                   output * ragged / (p["output"] * 1e6))
    return (p["launch"] * start_factor + p["round"] * rounds +
            (p["tile_end"] + p["tile_store"] * store * ragged) * ends + body +
            splits * p["split_k"] + split_sum * p["split_sum"] + is_shared * p["shared_tiles"] +
            persistent * p["persistent"] + copied * (p["copy"] + inputs / (p["copy_bytes"] * 1e6)))


def read():
    with open(os.path.join(CHAPTER, "measured", "configurations.csv")) as file:
        rows = [r for r in csv.DictReader(line for line in file if not line.startswith("#"))]
    names = [name for name in rows[0] if "_" in name]
    return names, rows


def fit(names, rows):
    configurations = [Configuration(name) for name in names]
    x, y, which, product = [], [], [], []
    for i, row in enumerate(rows):
        for j, c in enumerate(configurations):
            if row[c.name]:
                x.append(terms(c, int(row["m"]), int(row["n"]), int(row["k"])))
                y.append(float(row[c.name]))
                which.append(j)
                product.append(i)
    x, y, which, product = np.array(x, float), np.array(y), np.array(which), np.array(product)
    best = np.array([y[product == i].min() for i in range(len(rows))])[product]
    weight = (best / y) ** 2  # what is far from the best need not be known well
    begin = np.concatenate([np.log(list(START.values())), np.zeros(2 * len(names))])

    def residuals(theta):
        error = weight * (np.log(predict(theta, x, which, len(names))) - np.log(y))
        pull = 0.1 * (theta - begin)[:len(START)]  # towards where it began, if nothing else says
        return np.concatenate([error, 0.15 * theta[len(START):], pull])

    theta = least_squares(residuals, begin, loss="soft_l1", f_scale=0.1, max_nfev=60).x
    off = np.full((len(rows), len(names)), np.nan)
    off[product, which] = np.log(y / predict(theta, x, which, len(names)))
    return theta, off


def write(names, rows, theta, off):
    values = np.exp(theta)
    lines = [
        "/* gemm_measured.cuh: written by tools/fit_model.py from measured/configurations.csv.",
        " *",
        " * The numbers of the model in gemm_choose.cuh, and the products that were measured: for each",
        " * the natural logarithm of what every configuration took over what the model says, in",
        " * hundredths. */", "/* clang-format off */",
        "#ifndef PIPELINED_GEMM_GEMM_MEASURED_CUH",
        "#define PIPELINED_GEMM_GEMM_MEASURED_CUH", "", "#include <stdint.h>", "",
        "enum {",
        f"  GEMM_MODELLED = {len(names)}, /* configurations */",
        f"  GEMM_MEASURED = {len(rows)}, /* products */",
        f"  GEMM_NEIGHBOURS = {NEIGHBOURS},",
        "  GEMM_NOT_MEASURED = -128", "};",
        f"static const float GEMM_NEARNESS = {NEARNESS}f, GEMM_CAUTION = {CAUTION}f;", "",
        "/* Microseconds; megabytes a microsecond; sm_bytes: bytes a clock; l2_bytes: megabytes. */",
        "typedef struct {"]
    lines += [f"  float {name};" for name in START]
    lines += ["} GemmModel;", "", "static const GemmModel gemm_model = {"]
    lines += [f"    {v:.5g}f, /* {name} */" for name, v in zip(START, values)]
    lines += ["};", "", "/* Factors of a configuration's steps and of its launch. */",
              "static const struct {", "  float step, start;",
              "} gemm_configuration_model[GEMM_MODELLED] = {"]
    steps, starts = values[len(START):len(START) + len(names)], values[len(START) + len(names):]
    lines += [f"    {{{a:.4f}f, {b:.4f}f}}, /* {name} */" for name, a, b in zip(names, steps, starts)]
    lines += ["};", "", "typedef struct {", "  int32_t m, n, k;", "  int8_t off[GEMM_MODELLED];",
              "} GemmMeasured;", "", "static const GemmMeasured gemm_measured[GEMM_MEASURED] = {"]
    for row, errors in zip(rows, off):
        codes = ["-128" if math.isnan(e) else str(max(-127, min(127, round(100 * e)))) for e in errors]
        lines.append(f"    {{{row['m']}, {row['n']}, {row['k']}, {{{', '.join(codes)}}}}},")
    lines += ["};", "", "#endif", ""]
    with open(os.path.join(CHAPTER, "product", "gemm_measured.cuh"), "w") as file:
        file.write("\n".join(lines).replace(".0f", ".0f"))


if __name__ == "__main__":
    names, rows = read()
    theta, off = fit(names, rows)
    write(names, rows, theta, off)
    print(f"{len(rows)} products, {len(names)} configurations; the model is off by "
          f"{100 * np.nanstd(off):.0f} % (standard deviation)")
