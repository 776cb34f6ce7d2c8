#!/usr/bin/env python3
"""fit_model.py: fits the model of product/gemm_choose.cuh to what sweep measured. Writes product/gemm_model.cuh, fitted to
all measured products, and tests/07_pipelined_gemm/half_model.cuh, fitted to every second one, for the test that replays
the others. Needs numpy, which nothing else in this repository does, nvcc, and a C compiler for train_model.c.
Takes a few minutes.

    python3 07_pipelined_gemm/tools/fit_model.py

measured/streamed.csv and hot.csv have launches that followed one another in a stream, as programs launch, those of hot.csv
on a chip at its power limit; configurations.csv has replayed graphs, where several CTAs on an SM look better than
they are. The networks learn from all three, and see which times are from launches in a stream. The model that is written predicts these.
"""
import csv
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

CHAPTER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(CHAPTER)
OVERLAPPING, TERMS, ASIDE, FEATURES, TRAITS, HIDDEN, NETWORKS = 7, 19, 13, 19, 9, 32, 2
TERM_FACTORS = [1, 1, 1, 1, 1, 1, 1, .6, .3, 1, .7, .3, .6, .5, 6, .9, .01, .5, .2]  # where the fit begins
HOPELESS = 2.0  # times the least rough estimate: what is slower is not chosen
NEAR = 0.3  # of a logarithm: what the terms alone predict to be slower than this is not chosen
TILE_ENDS, BASE, OF_AREA, OF_STORE = 8, 5, 7, 5  # where the terms, and the features, have them
SIZES = slice(8, 11)  # of what the networks see of the product: the logarithms of m, n and k
MANY = np.log2(1e9) / 4  # multiplications for persistent kernels
LAUNCH = 2.5  # microseconds
HOST = 4.0  # microseconds: shorter launches in a stream wait for the host
NEARER = 0.1  # what the first network predicts to be slower than this is not chosen
STEPS, BATCH, RATE, TEMPERATURE, DECAY, BODY_DECAY = 10000, 128, 4e-3, 0.03, 5e-4, 1e-3
POWER = 2  # of the ratio of the best time to a configuration's: how much its error counts
REGRET = 2  # how much it counts what the choice loses, relative to the errors
TUNED = 7  # a product of shapes_old.txt, which the README's table shows, counts as much as so many others
USUAL = 3  # and one of the sizes that most models have,
HOT = 3  # and one that was measured on a hot chip
TABLES = "configurations.csv", "streamed.csv", "hot.csv"
INPUTS = ASIDE + FEATURES + TRAITS + 1  # of the networks; the last one: were launches in a stream?
END_TERMS, WIDE, EPILOGUES = 9, 160, ("beta", "gelu", "fp32")  # gemm_end()


class Facts:
    """What gemm_choose.cuh knows of products and configurations: terms, aside, features[product, configuration],
    traits[configuration]. `reckoned` is infinite where a configuration does not fit."""

    def __init__(self, names, traits, reckoned, terms, aside, features):
        self.names, self.traits, self.reckoned = names, traits, reckoned
        self.terms, self.aside, self.features = terms, aside, features

    def of(self, products=slice(None), configurations=slice(None)):
        pick = lambda x: x[products][:, configurations]
        return Facts(list(np.array(self.names)[configurations]), self.traits[configurations], pick(self.reckoned),
                     pick(self.terms), pick(self.aside), pick(self.features))

    def candidates(self):
        """What gemm_choose() asks the networks about."""
        too_few = (self.traits[:, 1] > 0) & (self.aside[..., SIZES].sum(-1) < MANY)
        reckoned = np.where(too_few, np.inf, self.reckoned)
        return reckoned <= HOPELESS * reckoned.min(1, keepdims=True)


def parse_facts(text, rows, products):
    """The output of tools/facts.cu."""
    lines = text.splitlines()
    names = lines[0].split()
    traits = np.array([line.split() for line in lines[1:]], np.float32)
    shape = products, len(names)
    at = tuple(rows[:, :2].astype(int).T)
    reckoned = np.full(shape, np.inf, np.float32)
    numbers = np.zeros((*shape, TERMS + ASIDE + FEATURES), np.float32)
    reckoned[at], numbers[at] = rows[:, 2], rows[:, 3:]
    return Facts(names, traits, reckoned, *np.split(numbers, [TERMS, TERMS + ASIDE], -1))


class Measured:
    """What sweep measured: shapes, times[product, configuration], infinite where the sweep did not know the
    configuration, streamed[product], how much it counts, line[product] of its file."""

    def __init__(self, shapes, times, streamed, counts, line):
        self.shapes, self.streamed, self.counts, self.line = shapes, streamed, counts, line
        self.absent = np.isinf(times)
        self.times = np.where(self.absent, np.nan, times)

    def of(self, products):
        return Measured([self.shapes[i] for i in products], np.where(self.absent, np.inf, self.times)[products],
                        self.streamed[products], self.counts[products], self.line[products])


def read_table(file, names):
    with open(os.path.join(CHAPTER, "measured", file)) as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    value = {"": "nan", "-": "inf"}
    times = np.array([[float(value.get(row.get(name, "-"), row.get(name))) for name in names] for row in rows])
    return rows, [tuple(int(row[x]) for x in "mnk") for row in rows], times


def read(names):
    tables = [read_table(file, names)[1:] for file in TABLES]
    # When configurations.csv was measured, gemm_short could not store unaligned rows of C.
    short = [name.startswith("short_") for name in names]
    tables[0][1][np.ix_([n % 8 != 0 for _, n, _ in tables[0][0]], short)] = np.inf
    counts = [len(shapes) for shapes, _ in tables]
    measured = Measured([shape for shapes, _ in tables for shape in shapes],
                        np.concatenate([times for _, times in tables]), np.repeat([0.0, 1.0, 1.0], counts),
                        np.repeat([1, 1, HOT], counts), np.concatenate([np.arange(count) for count in counts]))
    best = np.where(np.isnan(measured.times), np.inf, measured.times).min(1)  # infinite: there are direct ways only
    return measured.of(np.flatnonzero((best < np.inf) & ((best >= HOST) | (measured.streamed == 0))))


def is_usual(m, n, k):
    return (m <= 16 or m % 16 == 0) and n % 256 == 0 and k % 256 == 0 and min(n, k) >= 512


def drawn(measured):
    """The products, from which each step of the training draws some, those that count more repeated."""
    with open(os.path.join(CHAPTER, "tools", "shapes_old.txt")) as file:
        tuned = {tuple(int(x) for x in line.split()) for line in file}
    return np.repeat(np.arange(len(measured.shapes)),
                     [TUNED if shape in tuned else max(USUAL if is_usual(*shape) else 1, count)
                      for shape, count in zip(measured.shapes, measured.counts)])


def compile_tools(folder):
    tools = os.path.join(CHAPTER, "tools")
    subprocess.run(["nvcc", "-std=c++14", "-Xcicc", "-O0", "-gencode", "arch=compute_90a,code=compute_90a",
                    "-I" + os.path.join(ROOT, "common"), "-o", os.path.join(folder, "facts"),
                    os.path.join(tools, "facts.cu"), os.path.join(ROOT, "build/common/libcommon.a")], check=True)
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O3", "-march=native", "-ffast-math", "-o",
                    os.path.join(folder, "train_model"), os.path.join(tools, "train_model.c"), "-lm"], check=True)


def facts_of(folder, shapes):
    file = os.path.join(folder, "rows")
    text = subprocess.run([os.path.join(folder, "facts"), file], check=True, stdout=subprocess.PIPE, text=True,
                          input="".join("%d %d %d\n" % tuple(s) for s in shapes)).stdout
    rows = np.fromfile(file, np.float32).reshape(-1, 3 + TERMS + ASIDE + FEATURES)
    return parse_facts(text, rows, len(shapes))


def split(values, configurations):
    """The parameters of train_model.c by name; those of the networks as lists."""
    at = 0

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return values[at - int(np.prod(shape)):at].reshape(shape)
    p = {"launch": take(1)[0], "term": take(TERMS), "body": take(configurations), "network": []}
    for _ in range(NETWORKS):
        p["network"].append({"first": take(INPUTS, HIDDEN), "first_bias": take(configurations, HIDDEN),
                             "second": take(HIDDEN, HIDDEN), "second_bias": take(HIDDEN), "last": take(HIDDEN)})
    return p


def begin(configurations):
    """The terms are shared by all networks; these differ in where they begin."""
    draw = np.random.default_rng(1).standard_normal
    values = [[np.log(LAUNCH)], np.log(TERM_FACTORS), np.zeros(configurations)]
    for _ in range(NETWORKS):
        values += [draw(INPUTS * HIDDEN) / np.sqrt(INPUTS), 0.25 * draw(configurations * HIDDEN),
                   draw(HIDDEN * HIDDEN) / np.sqrt(HIDDEN), np.zeros(HIDDEN), 0.1 * draw(HIDDEN)]
    return np.concatenate(values).astype(np.float32)


def seen_by_networks(facts, streamed, entries):
    products, configurations = entries
    return np.concatenate([facts.aside[entries], facts.features[entries], facts.traits[configurations],
                           streamed[products, None]], -1)


def normalise(facts, measured):
    entries = np.nonzero(~np.isnan(measured.times) & np.isfinite(facts.reckoned))
    seen, known = seen_by_networks(facts, measured.streamed, entries).astype(float), np.log(measured.times[entries])
    mean, deviation = seen.mean(0), seen.std(0)
    mean[ASIDE + BASE], deviation[ASIDE + BASE] = known.mean(), known.std()
    return mean, 1 / np.maximum(deviation, 1e-3)


def training_input(facts, measured, draw, mean, scale):
    times, known, usable = measured.times, ~np.isnan(measured.times), facts.candidates() & ~measured.absent
    entries = np.nonzero(known & np.isfinite(facts.reckoned) | usable)
    best, known = np.nanmin(times, 1)[entries[0]], known[entries]
    time = np.where(known, times[entries], 1)
    # What choosing a configuration loses (all, if it was so slow that it was not measured); and what is far
    # from the best need not be known well.
    lost, weight = np.where(known, np.minimum(time / best - 1, 1), 1), np.where(known, (best / time) ** POWER, 0)
    at = ASIDE + BASE
    whole = [times.shape[1], NETWORKS, STEPS, BATCH, len(times), len(time), len(draw), 1, at]
    real = [scale[at], RATE, TEMPERATURE, DECAY, BODY_DECAY, REGRET]
    inputs = (seen_by_networks(facts, measured.streamed, entries) - mean) * scale
    integers, reals = lambda x: np.asarray(x, np.int32), lambda x: np.asarray(x, np.float32)
    return [integers(whole), reals(real), integers(np.searchsorted(entries[0], np.arange(len(times) + 1))),
            integers(entries[1]), integers(draw), reals(facts.terms[entries]), reals(inputs), reals(np.log(time)),
            reals(lost), reals(weight), reals(usable[entries]), begin(times.shape[1])]


class Fit:
    """Runs train_model; .model() waits for it."""

    def __init__(self, folder, name, facts, measured, draw):
        self.configurations = len(facts.names)
        self.mean, self.scale = normalise(facts, measured)
        self.out = os.path.join(folder, name + ".parameters")
        file = os.path.join(folder, name + ".input")
        with open(file, "wb") as data:
            for values in training_input(facts, measured, draw, self.mean, self.scale):
                data.write(values.tobytes())
        self.process = subprocess.Popen([os.path.join(folder, "train_model"), file, self.out])

    def model(self):
        if self.process.wait() != 0:
            sys.exit("train_model failed")
        return self.mean, self.scale, split(np.fromfile(self.out, np.float32), self.configurations)


def predict(model, facts):
    """Logarithms of launches in a stream: what the terms predict, and each network by itself; infinite where a
    configuration does not fit."""
    mean, scale, p = model
    entries = np.nonzero(np.isfinite(facts.reckoned))
    terms = facts.terms[entries] * np.exp(p["term"])
    longest = np.sqrt(np.sqrt(((terms[:, :OVERLAPPING] + 1e-3) ** 4).sum(-1)))
    base = np.log(np.exp(p["launch"]) + longest * np.exp(p["body"])[entries[1]] + terms[:, OVERLAPPING:].sum(-1))
    seen = (seen_by_networks(facts, np.ones(len(facts.reckoned)), entries) - mean) * scale
    seen[:, ASIDE + BASE] += base * scale[ASIDE + BASE]
    seen = seen.astype(np.float32)
    found = np.full((1 + NETWORKS, *facts.reckoned.shape), np.inf)
    found[0][entries] = base
    for i, network in enumerate(p["network"]):
        hidden = np.maximum(seen @ network["first"] + network["first_bias"][entries[1]], 0)
        off = np.maximum(hidden @ network["second"] + network["second_bias"], 0) @ network["last"]
        found[1 + i][entries] = base + off
    return found[0], found[1:]


def picks(model, facts):
    base, predicted = predict(model, facts)
    base = np.where(facts.candidates(), base, np.inf)
    near = base <= base.min(1, keepdims=True) + NEAR
    first = np.where(near, predicted[0], np.inf)
    return np.where(first <= first.min(1, keepdims=True) + NEARER, predicted.mean(0), np.inf).argmin(1)


def regret(model, facts, measured):
    """Without products of which the sweep did not know the configuration that is chosen."""
    every, chosen = np.arange(len(measured.times)), picks(model, facts)
    lost = np.nan_to_num(measured.times[every, chosen] / np.nanmin(measured.times, 1) - 1, nan=1)
    return lost[~measured.absent[every, chosen]]  # not measured: twice as slow


def end_terms(name, facts, product, configuration):
    """What gemm_end() multiplies: the area of tiles, of those that end at once, and their number; of kernels that carry,
    and of those with tiles in two halves; the area of wide tiles."""
    carries, persistent, split_k, swapped, _, _, _, _, ctas = facts.traits[configuration]
    tiles = np.exp(facts.features[product, configuration, TILE_ENDS])
    area, store = facts.terms[product, configuration, [OF_AREA, OF_STORE]] / (2 ** split_k, 1)
    values = np.zeros(END_TERMS)
    if carries:
        values[5:7] = area, store
    elif persistent:
        values[7] = area
    else:
        values[0 + int(swapped)], values[2 + int(swapped)] = area, min(tiles, 2 ** ctas) / tiles * area
        values[4] = tiles
        if not swapped and int(re.search(r"\dx(\d+)", name)[1]) >= WIDE:
            values[8] = area
    return values


def fit_ends(folder, names, parts):
    """gemm_end()'s factors, by least squares that mind the relative error, and outliers less; for every product, or for
    every second one."""
    rows, shapes, times = read_table("epilogues.csv", names)
    facts = facts_of(folder, shapes)
    lines = {(shape, row["epilogue"]): i for i, (shape, row) in enumerate(zip(shapes, rows))}
    some = set(list(dict.fromkeys(shapes))[::parts])
    found = []
    for epilogue in EPILOGUES:
        terms, more, weights = [], [], []
        for (shape, kind), i in lines.items():
            if kind != epilogue or shape not in some or not np.isfinite(times[i]).any():
                continue
            plain, best = times[lines[shape, "plain"]], np.nanmin(times[i])
            for c in np.flatnonzero((times[i] < 4 * best) & np.isfinite(plain)):
                terms.append(end_terms(names[c], facts, i, c))
                more.append(times[i][c] - plain[c])
                weights.append(1 / times[i][c])
        terms, more, weights = np.array(terms), np.array(more), np.array(weights)
        factors = np.zeros(END_TERMS)
        for _ in range(5):
            used = factors >= 0
            scaled = terms[:, used] * weights[:, None]
            factors[used] = np.linalg.solve(scaled.T @ scaled + 1e-3 * np.eye(used.sum()), scaled.T @ (more * weights))
            error = np.abs(more - terms @ np.maximum(factors, 0)) * weights
            weights = weights * np.sqrt(np.minimum(1, 0.05 / np.maximum(error, 1e-9)))
        found.append(np.maximum(factors, 0))
    return found


def numbers(values):
    """What the decay has left of unused weights becomes 0: processors are slow with denormal numbers."""
    values = np.where(np.abs(values) < 1e-9, 0, values)
    return ", ".join("%.5gf" % v if "e" in "%.5g" % v or "." in "%.5g" % v else "%.5g.0f" % v
                     for v in np.asarray(values, float).ravel())


def rows(values):
    return "{" + ",\n     ".join("{" + numbers(row) + "}" for row in np.asarray(values)) + "}"


def write(path, name, what, model, ends, facts, text):
    """Networks side by side; what normalises the inputs, and what a configuration's traits and launches in a stream
    add, is in the weights."""
    mean, scale, p = model
    of = lambda key: [np.asarray(network[key], float) for network in p["network"]]
    first = [weights * scale[:, None] for weights in of("first")]
    known = np.concatenate([facts.traits, np.ones((len(facts.traits), 1))], -1)
    bias = [own + known @ weights[ASIDE + FEATURES:] - mean @ weights for own, weights in zip(of("first_bias"), first)]
    side_by_side = lambda values: np.concatenate(values, -1)
    first = side_by_side(first)
    out = [f"/* {os.path.basename(path)}: written by tools/fit_model.py. The numbers of the model in",
           f" * gemm_choose.cuh, fitted to {what} of measured/hot.csv, streamed.csv and configurations.csv. */",
           "/* clang-format off */", *text, "", f"static const GemmModel {name} = {{",
           f"    {numbers(np.exp(p['launch']))},", f"    {{{numbers(np.exp(p['term']))}}},",
           f"    {{{numbers(np.exp(p['body']))}}},", f"    {rows(first[:ASIDE])},",
           f"    {rows(first[ASIDE:ASIDE + FEATURES])},", f"    {rows(side_by_side(bias))},",
           "    {" + ",\n     ".join(rows(weights) for weights in of("second")) + "},",
           f"    {{{numbers(side_by_side(of('second_bias')))}}},",
           f"    {{{numbers(side_by_side(of('last')) / NETWORKS)}}},", f"    {rows(ends)}", "};", "", "#endif", ""]
    with open(path, "w") as file:
        file.write("\n".join(out))


def say(label, lost):
    print(f"{label}: {100 * lost.mean():.2f} % lost on average, {100 * np.percentile(lost, 95):.1f} % at "
          f"the 95th percentile, {100 * lost.max():.1f} % at worst, {(lost > .1).sum()} of {len(lost)} "
          "above 10 %", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        compile_tools(folder)
        names = facts_of(folder, []).names
        measured, half_ends, ends = read(names), fit_ends(folder, names, 2), fit_ends(folder, names, 1)
        facts = facts_of(folder, measured.shapes)
        every = np.arange(len(measured.shapes))
        halves = [every[measured.line % 2 == i] for i in (0, 1)]
        half = Fit(folder, "half", facts.of(halves[0]), measured.of(halves[0]), drawn(measured.of(halves[0])))
        whole = Fit(folder, "whole", facts, measured, drawn(measured))
        half, whole = half.model(), whole.model()
    for label, model, products in (("fitted to one half, judged on it", half, halves[0]),
                                   ("judged on the other half", half, halves[1]),
                                   ("fitted to all, judged on all", whole, every)):
        for kind, count in (("in a stream", 1), ("on a hot chip", HOT)):
            some = products[(measured.streamed[products] > 0) & (measured.counts[products] == count)]
            say(f"{label}, {kind}", regret(model, facts.of(some), measured.of(some)))
    guard = ["#ifndef PIPELINED_GEMM_%s_CUH", "#define PIPELINED_GEMM_%s_CUH", ""]
    write(os.path.join(ROOT, "tests/07_pipelined_gemm/half_model.cuh"), "half_model",
          "every second product", half, half_ends, facts, [g % "HALF_MODEL" if "%" in g else g for g in guard] +
          ['#include "../../07_pipelined_gemm/product/gemm_choose.cuh"'])
    write(os.path.join(CHAPTER, "product", "gemm_model.cuh"), "gemm_model", "all products", whole, ends, facts,
          [g % "GEMM_MODEL" if "%" in g else g for g in guard] + ['#include "gemm_choose.cuh"'])


if __name__ == "__main__":
    main()
