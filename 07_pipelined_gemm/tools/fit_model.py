#!/usr/bin/env python3
"""fit_model.py: fits the model of product/gemm_choose.cuh to measured/configurations.csv. Writes
product/gemm_model.cuh, fitted to all measured products, and tests/07_pipelined_gemm/half_model.cuh,
fitted to every second one, for the test that replays the others. Needs numpy and jax; nothing else in this
repository does. Takes half a minute on an H200, a quarter of an hour on a processor.

    python3 07_pipelined_gemm/tools/fit_model.py
"""
import csv
import os
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

CHAPTER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(CHAPTER)
OVERLAPPING, TERMS, ASIDE, FEATURES, TRAITS, HIDDEN, NETWORKS = 7, 19, 13, 19, 9, 32, 2
TERM_FACTORS = [1, 1, 1, 1, 1, 1, 1, .6, .3, 1, .7, .3, .6, .5, 6, .9, .01, .5, .2]  # where the fit begins
HOPELESS_BRIEF, HOPELESS = 2.0, 1.9
BRIEF = 10.0  # microseconds, by the rough estimate
NEAR = 0.3  # of a logarithm: what the terms alone predict to be slower than this is not chosen
TILE_ENDS, PERSISTENT, BASE = 8, 17, 5  # where the terms, and the features, have them
SIZES = slice(8, 11)  # of what the networks see of the product: the logarithms of m, n and k
MANY, LARGE = np.log2(1e9) / 4, np.log2(2e10) / 4
LAUNCH = 2.5  # microseconds
NEARER = 0.1  # what the first network predicts to be slower than this is not chosen
STEPS, BATCH, RATE, TEMPERATURE, DECAY = 9000, 256, 4e-3, 0.03, 1e-3
POWER = 2  # of the ratio of the best time to a configuration's: how much its error counts
REGRET = 2  # how much it counts what the choice loses, relative to the errors
TUNED = 7  # a product of shapes_old.txt, which the README's table shows, counts as much as so many others


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
        persistent, carries = self.traits[:, 1] > 0, self.traits[:, 0] > 0
        fits, sizes = np.isfinite(self.reckoned), self.aside[..., SIZES].sum(-1)
        too_few = persistent & (sizes < MANY)
        can_carry = (fits & persistent & carries).any(1, keepdims=True)
        starts_anew = ~persistent & ~carries & (self.terms[..., TILE_ENDS] > 1)
        too_many = starts_anew & can_carry & (sizes >= LARGE)
        carried = np.array([name.replace("persistent", "carry") in self.names for name in self.names])
        in_halves = persistent & ~carries & carried & can_carry
        reckoned = np.where(too_few | too_many | in_halves, np.inf, self.reckoned)
        fastest = reckoned.min(1, keepdims=True)
        return reckoned <= np.where(fastest < BRIEF, HOPELESS_BRIEF, HOPELESS) * fastest


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


def read():
    with open(os.path.join(CHAPTER, "measured", "configurations.csv")) as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    names = [name for name in rows[0] if "_" in name]  # the configurations'
    shapes = [tuple(int(row[x]) for x in "mnk") for row in rows]
    times = np.array([[float(row[name] or "nan") for name in names] for row in rows])
    return names, shapes, times


def drawn(shapes, chosen):
    """The chosen products, from which each step of the training draws some, the tuned ones repeated."""
    with open(os.path.join(CHAPTER, "tools", "shapes_old.txt")) as file:
        tuned = {tuple(int(x) for x in line.split()) for line in file}
    return np.repeat(chosen, [TUNED if shapes[i] in tuned else 1 for i in chosen])


def facts_of(names, shapes):
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "facts")
        subprocess.run(["nvcc", "-std=c++14", "-Xcicc", "-O0", "-gencode",
                        "arch=compute_90a,code=compute_90a", "-I" + os.path.join(ROOT, "common"), "-o",
                        program, os.path.join(CHAPTER, "tools", "facts.cu"),
                        os.path.join(ROOT, "build/common/libcommon.a")], check=True)
        file = os.path.join(folder, "rows")
        text = subprocess.run([program, file], input="".join("%d %d %d\n" % tuple(s) for s in shapes), text=True,
                              check=True, stdout=subprocess.PIPE).stdout
        rows = np.fromfile(file, np.float32).reshape(-1, 3 + TERMS + ASIDE + FEATURES)
    facts = parse_facts(text, rows, len(shapes))
    if facts.names != names:
        sys.exit("the columns of configurations.csv are not gemm_configurations.cuh's")
    return facts


def begin(configurations):
    """The terms are shared by all networks; these differ in where they begin."""
    def network(seed):
        keys = jax.random.split(jax.random.PRNGKey(seed), 4)
        normal, inputs = jax.random.normal, ASIDE + FEATURES + TRAITS
        return {"first": normal(keys[0], (inputs, HIDDEN)) / np.sqrt(inputs),
                "first_bias": 0.25 * normal(keys[3], (configurations, HIDDEN)),
                "second": normal(keys[1], (HIDDEN, HIDDEN)) / np.sqrt(HIDDEN),
                "second_bias": jnp.zeros(HIDDEN), "last": 0.1 * normal(keys[2], (HIDDEN,))}
    return {"launch": jnp.log(LAUNCH), "term": jnp.log(jnp.array(TERM_FACTORS)), "body": jnp.zeros(configurations),
            "network": jax.vmap(network)(jnp.arange(NETWORKS))}


def base_of(p, terms):
    """gemm_base()."""
    scaled = terms * jnp.exp(p["term"])
    longest = jnp.sqrt(jnp.sqrt(((scaled[..., :OVERLAPPING] + 1e-3) ** 4).sum(-1)))
    return jnp.log(jnp.exp(p["launch"]) + longest * jnp.exp(p["body"]) + scaled[..., OVERLAPPING:].sum(-1))


def predict(p, terms, seen, scale):
    """gemm_predict(), for each network by itself: [network, product, configuration]. `seen` is normalised, except
    that the base is missing."""
    base = base_of(p, terms)
    at = ASIDE + BASE
    seen = seen.at[..., at].set(jax.lax.stop_gradient(base) * scale[at] + seen[..., at])

    def off(network):
        hidden = jax.nn.relu(seen @ network["first"] + network["first_bias"])
        return jax.nn.relu(hidden @ network["second"] + network["second_bias"]) @ network["last"]
    return base + jax.vmap(off)(p["network"])


def seen_by_networks(facts):
    traits = np.broadcast_to(facts.traits, (*facts.reckoned.shape, TRAITS))
    return np.concatenate([facts.aside, facts.features, traits], -1)


def normalise(facts, times):
    seen, known = seen_by_networks(facts), ~np.isnan(times) & np.isfinite(facts.reckoned)
    mean, deviation = seen[known].mean(0), seen[known].std(0)
    mean[ASIDE + BASE], deviation[ASIDE + BASE] = np.log(times[known]).mean(), np.log(times[known]).std()
    return mean, 1 / np.maximum(deviation, 1e-3)


def scaled(facts, mean, scale):
    fits = np.isfinite(facts.reckoned)[..., None]
    return np.where(fits, (seen_by_networks(facts) - mean) * scale, 0).astype(np.float32)


def train(facts, times, draw, mean, scale):
    known, usable = ~np.isnan(times), jnp.array(facts.candidates())
    best = np.nanmin(times, 1, keepdims=True)
    wanted = jnp.array(np.log(np.where(known, times, 1)), jnp.float32)
    # What choosing a configuration loses (all, if it was so slow that it was not measured); and what is far
    # from the best need not be known well.
    lost = jnp.array(np.where(known, np.minimum(times / best - 1, 1), 1), jnp.float32)
    weight = jnp.array(np.where(known, (best / np.where(known, times, 1)) ** POWER, 0), jnp.float32)
    data = {"terms": jnp.array(facts.terms), "seen": jnp.array(scaled(facts, mean, scale)), "wanted": wanted,
            "lost": lost, "weight": weight, "usable": usable}
    draw, scale = jnp.array(draw), jnp.array(scale, jnp.float32)

    def loss(p, d):
        predicted = predict(p, d["terms"], d["seen"], scale)
        error = jnp.abs(predicted - d["wanted"])
        error = jnp.where(error < .1, 5 * error ** 2, error - .05)
        share = jax.nn.softmax(jnp.where(d["usable"], -predicted, -50) / TEMPERATURE, -1)
        decay = sum((p["network"][name] ** 2).sum() for name in ("first", "second", "last", "first_bias"))
        return ((d["weight"] * error).sum() / d["weight"].sum() + REGRET * (share * d["lost"]).sum(-1).mean(-1).sum() +
                DECAY * decay + 1e-3 * (p["body"] ** 2).sum())

    def step(data, held, turn):  # of Adam, with a rate that falls like a cosine
        p, first, second = held
        key, count = turn
        at = draw[jax.random.randint(key, (BATCH,), 0, len(draw))]
        gradient = jax.grad(loss)(p, {name: values[at] for name, values in data.items()})
        each = jax.tree_util.tree_map
        first = each(lambda a, g: .9 * a + .1 * g, first, gradient)
        second = each(lambda a, g: .999 * a + .001 * g * g, second, gradient)
        rate = RATE * (1 + jnp.cos(jnp.pi * count / STEPS)) / 2
        p = each(lambda v, a, b: v - rate * (a / (1 - .9 ** (count + 1))) /
                 (jnp.sqrt(b / (1 - .999 ** (count + 1))) + 1e-8), p, first, second)
        return (p, first, second), None

    p = begin(times.shape[1])
    zeros = jax.tree_util.tree_map(jnp.zeros_like, p)
    turns = jax.random.split(jax.random.PRNGKey(1000), STEPS), jnp.arange(STEPS)
    run = jax.jit(lambda held, data: jax.lax.scan(lambda h, t: step(data, h, t), held, turns)[0][0])
    p = run((p, zeros, zeros), data)
    return jax.tree_util.tree_map(np.asarray, p)


def fit(facts, times, chosen, draw):
    mean, scale = normalise(facts.of(chosen), times[chosen])
    return mean, scale, train(facts, times, draw, mean, scale)


def picks(model, facts):
    mean, scale, p = model
    predicted = np.array(predict(p, facts.terms, jnp.array(scaled(facts, mean, scale)), scale))
    base = np.where(facts.candidates(), np.array(base_of(p, facts.terms)), np.inf)
    near = base <= base.min(1, keepdims=True) + NEAR
    first = np.where(near, predicted[0], np.inf)
    return np.where(first <= first.min(1, keepdims=True) + NEARER, predicted.mean(0), np.inf).argmin(1)


def regret(model, facts, times):
    taken = times[np.arange(len(times)), picks(model, facts)]
    return np.nan_to_num(taken / np.nanmin(times, 1) - 1, nan=1)  # not measured: twice as slow


def numbers(values):
    """What the decay has left of unused weights becomes 0: processors are slow with denormal numbers."""
    values = np.where(np.abs(values) < 1e-9, 0, values)
    return ", ".join("%.5gf" % v if "e" in "%.5g" % v or "." in "%.5g" % v else "%.5g.0f" % v
                     for v in np.asarray(values, float).ravel())


def rows(values):
    return "{" + ",\n     ".join("{" + numbers(row) + "}" for row in np.asarray(values)) + "}"


def write(path, name, what, model, facts, text):
    """Networks side by side; what normalises the inputs, and what a configuration's traits add, is in the weights."""
    mean, scale, p = model
    networks = p["network"]
    first = np.asarray(networks["first"], float) * scale[:, None]  # [network, input, hidden]
    traits = facts.traits @ first[:, ASIDE + FEATURES:] - (mean @ first)[:, None]
    bias = np.asarray(networks["first_bias"], float) + traits
    side_by_side = lambda values: np.concatenate(list(np.asarray(values, float)), -1)
    first = side_by_side(first)
    out = [f"/* {os.path.basename(path)}: written by tools/fit_model.py. The numbers of the model in",
           f" * gemm_choose.cuh, fitted to {what} of measured/configurations.csv. */",
           "/* clang-format off */", *text, "", f"static const GemmModel {name} = {{",
           f"    {numbers(np.exp(p['launch']))},", f"    {{{numbers(np.exp(p['term']))}}},",
           f"    {{{numbers(np.exp(p['body']))}}},", f"    {rows(first[:ASIDE])},",
           f"    {rows(first[ASIDE:ASIDE + FEATURES])},", f"    {rows(side_by_side(bias))},",
           "    {" + ",\n     ".join(rows(network) for network in networks["second"]) + "},",
           f"    {{{numbers(side_by_side(networks['second_bias']))}}},",
           f"    {{{numbers(side_by_side(networks['last']) / NETWORKS)}}}", "};", "", "#endif", ""]
    with open(path, "w") as file:
        file.write("\n".join(out))


def say(label, lost):
    print(f"{label}: {100 * lost.mean():.2f} % lost on average, {100 * np.percentile(lost, 95):.1f} % at "
          f"the 95th percentile, {100 * lost.max():.1f} % at worst, {(lost > .1).sum()} of {len(lost)} "
          "above 10 %", flush=True)


def main():
    names, shapes, times = read()
    facts = facts_of(names, shapes)
    halves = np.arange(0, len(shapes), 2), np.arange(1, len(shapes), 2)
    half = fit(facts, times, halves[0], drawn(shapes, halves[0]))
    for label, products in zip(("fitted to one half, judged on it", "judged on the other half"), halves):
        say(label, regret(half, facts.of(products), times[products]))
    guard = ["#ifndef PIPELINED_GEMM_%s_CUH", "#define PIPELINED_GEMM_%s_CUH", ""]
    write(os.path.join(ROOT, "tests/07_pipelined_gemm/half_model.cuh"), "half_model",
          "every second product", half, facts, [g % "HALF_MODEL" if "%" in g else g for g in guard] +
          ['#include "../../07_pipelined_gemm/product/gemm_choose.cuh"'])
    every = np.arange(len(shapes))
    whole = fit(facts, times, every, drawn(shapes, every))
    say("fitted to all, judged on all", regret(whole, facts, times))
    write(os.path.join(CHAPTER, "product", "gemm_model.cuh"), "gemm_model", "all products", whole, facts,
          [g % "GEMM_MODEL" if "%" in g else g for g in guard] + ['#include "gemm_choose.cuh"'])


if __name__ == "__main__":
    main()
