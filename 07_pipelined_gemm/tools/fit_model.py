#!/usr/bin/env python3
"""fit_model.py: fits the model of product/gemm_choose.cuh to measured/configurations.csv. Writes
product/gemm_model.cuh, fitted to all measured products, and tests/07_pipelined_gemm/half_model.cuh,
fitted to every second one, for the test that replays the others. Needs numpy and jax; nothing else in this repository does. Takes some minutes.

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
OVERLAPPING, TERMS, FEATURES, HIDDEN, NETWORKS = 6, 17, 35, 16, 4
TERM_FACTORS = [1, 1, 1, 1, 1, 1, .6, .3, 1, .7, .3, .6, .5, 6, .9, .01, .5]  # where the fit begins
HOPELESS_BRIEF, HOPELESS = 1.8, 1.6
BRIEF = 10.0  # microseconds, by the rough estimate
PERSISTENT, TILE_ENDS, CARRIES, SIZES = 16, 7, 11, slice(23, 26)  # where gemm_facts() has what it says of them
MANY, LARGE = np.log2(1e9) / 4, np.log2(2e10) / 4
LAUNCH, SHARPNESS = 2.5, 4.3  # and microseconds for a launch
STEPS, BATCH, RATE, TEMPERATURE, DECAY = 1500, 128, 4e-3, 0.03, 5e-4
TUNED = 7  # a product of shapes_old.txt, which the README's table shows, counts as much as so many others


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


def facts(names, shapes):
    """Terms and features of every product and configuration, as gemm_facts() has them."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "facts")
        subprocess.run(["nvcc", "-std=c++14", "-Xcicc", "-O0", "-gencode",
                        "arch=compute_90a,code=compute_90a", "-I" + os.path.join(ROOT, "common"), "-o",
                        program, os.path.join(CHAPTER, "tools", "facts.cu"),
                        os.path.join(ROOT, "build/common/libcommon.a")], check=True)
        text = subprocess.run([program], input="".join("%d %d %d\n" % s for s in shapes), text=True,
                              check=True, stdout=subprocess.PIPE).stdout.splitlines()
    if text[0].split() != names:
        sys.exit("the columns of configurations.csv are not gemm_configurations.cuh's")
    terms = np.zeros((len(shapes), len(names), TERMS), np.float32)
    features = np.zeros((len(shapes), len(names), FEATURES), np.float32)
    for line in text[1:]:
        product, configuration, *numbers = line.split()
        at = int(product), int(configuration)
        terms[at], features[at] = numbers[:TERMS], numbers[TERMS:]
    return terms, features


def candidates(terms, features):
    """What gemm_choose() asks the networks about."""
    overlapping = terms[..., :OVERLAPPING]
    reckoned = 3 + overlapping.max(-1) + .1 * overlapping.sum(-1) + .3 * terms[..., OVERLAPPING]
    fits, multiplications = (features != 0).any(-1), features[..., SIZES].sum(-1)
    persistent, carries = terms[..., PERSISTENT] > 0, features[..., CARRIES] > 0
    too_few = persistent & (multiplications < MANY)
    can_carry = (fits & persistent & carries).any(1, keepdims=True)
    starts_anew = ~persistent & ~carries & (terms[..., TILE_ENDS] > 1)
    too_many = starts_anew & can_carry & (multiplications >= LARGE)
    reckoned = np.where(fits & ~too_few & ~too_many, reckoned, np.inf)
    fastest = reckoned.min(1, keepdims=True)
    return reckoned <= np.where(fastest < BRIEF, HOPELESS_BRIEF, HOPELESS) * fastest


def begin(seed, configurations):
    keys = jax.random.split(jax.random.PRNGKey(seed), 4)
    normal = jax.random.normal
    return {"launch": jnp.log(LAUNCH), "sharpness": jnp.log(SHARPNESS - 1),
            "term": jnp.log(jnp.array(TERM_FACTORS)), "body": jnp.zeros(configurations),
            "first": normal(keys[0], (FEATURES, HIDDEN)) / np.sqrt(FEATURES),
            "first_bias": 0.25 * normal(keys[3], (configurations, HIDDEN)),
            "second": normal(keys[1], (HIDDEN, HIDDEN)) / np.sqrt(HIDDEN),
            "second_bias": jnp.zeros(HIDDEN), "last": 0.1 * normal(keys[2], (HIDDEN,))}


def predict(p, terms, features):
    """gemm_predict()."""
    scaled, sharpness = terms * jnp.exp(p["term"]), 1 + jnp.exp(p["sharpness"])
    longest = ((scaled[..., :OVERLAPPING] + 1e-3) ** sharpness).sum(-1) ** (1 / sharpness)
    time = jnp.exp(p["launch"]) + longest * jnp.exp(p["body"]) + scaled[..., OVERLAPPING:].sum(-1)
    hidden = jax.nn.relu(features @ p["first"] + p["first_bias"])
    hidden = jax.nn.relu(hidden @ p["second"] + p["second_bias"])
    return jnp.log(time) + hidden @ p["last"]


def train(terms, features, times, draw):
    """All networks at once: they differ in where they begin and in the order of the products."""
    known, fits = ~np.isnan(times), candidates(terms, features)
    best = np.nanmin(times, 1, keepdims=True)
    wanted = jnp.array(np.log(np.where(known, times, 1)), jnp.float32)
    # What choosing a configuration loses (all, if it was so slow that it was not measured); and what is far
    # from the best need not be known well.
    lost = jnp.array(np.where(known, np.minimum(times / best - 1, 1), 1), jnp.float32)
    weight = jnp.array(np.where(known, (best / np.where(known, times, 1)) ** 2, 0), jnp.float32)
    usable, terms, features = jnp.array(fits), jnp.array(terms), jnp.array(features)
    draw = jnp.array(draw)

    def loss(p, at):
        predicted = predict(p, terms[at], features[at])
        error = jnp.abs(predicted - wanted[at])
        error = jnp.where(error < .1, 5 * error ** 2, error - .05)
        share = jax.nn.softmax(jnp.where(usable[at], -predicted, -50) / TEMPERATURE, -1)
        decay = sum((p[name] ** 2).sum() for name in ("first", "second", "last", "first_bias"))
        return ((weight[at] * error).sum() / weight[at].sum() + 2 * (share * lost[at]).sum(-1).mean() +
                DECAY * decay + 1e-3 * (p["body"] ** 2).sum())

    def step(held, turn):  # of Adam, with a rate that falls like a cosine
        p, first, second = held
        key, count = turn
        at = jax.random.choice(key, draw, (min(BATCH, len(draw)),), replace=False)
        gradient = jax.grad(loss)(p, at)
        each = jax.tree_util.tree_map
        first = each(lambda a, g: .9 * a + .1 * g, first, gradient)
        second = each(lambda a, g: .999 * a + .001 * g * g, second, gradient)
        rate = RATE * (1 + jnp.cos(jnp.pi * count / STEPS)) / 2
        p = each(lambda v, a, b: v - rate * (a / (1 - .9 ** (count + 1))) /
                 (jnp.sqrt(b / (1 - .999 ** (count + 1))) + 1e-8), p, first, second)
        return (p, first, second), None

    def one(seed):
        p = begin(seed, times.shape[1])
        zeros = jax.tree_util.tree_map(jnp.zeros_like, p)
        turns = jax.random.split(jax.random.PRNGKey(1000 + seed), STEPS), jnp.arange(STEPS)
        return jax.lax.scan(step, (p, zeros, zeros), turns)[0][0]

    all_networks = jax.jit(jax.vmap(one))(jnp.arange(NETWORKS))
    return [{name: np.asarray(v[i]) for name, v in all_networks.items()} for i in range(NETWORKS)]


def fit(terms, features, times, chosen, draw):
    known = ~np.isnan(times[chosen])
    mean, deviation = features[chosen][known].mean(0), features[chosen][known].std(0)
    scale = 1 / np.maximum(deviation, 1e-3)
    fits = (features != 0).any(-1, keepdims=True)
    return mean, scale, train(terms, np.where(fits, (features - mean) * scale, 0), times, draw)


def regret(model, terms, features, times, chosen):
    mean, scale, networks = model
    total = sum(np.array(predict(p, terms[chosen], (features[chosen] - mean) * scale)) for p in networks)
    total[~candidates(terms[chosen], features[chosen])] = np.inf
    taken = times[chosen][np.arange(len(chosen)), total.argmin(1)]
    return np.nan_to_num(taken / np.nanmin(times[chosen], 1) - 1, nan=1)  # not measured: twice as slow


def numbers(values):
    return ", ".join("%.5gf" % v if "e" in "%.5g" % v or "." in "%.5g" % v else "%.5g.0f" % v
                     for v in np.asarray(values, float).ravel())


def rows(values):
    return "{" + ",\n     ".join("{" + numbers(row) + "}" for row in np.asarray(values)) + "}"


def write(path, name, what, model, text):
    mean, scale, networks = model
    out = [f"/* {os.path.basename(path)}: written by tools/fit_model.py. The numbers of the model in",
           f" * gemm_choose.cuh, fitted to {what} of measured/configurations.csv. */",
           "/* clang-format off */", *text, "", f"static const GemmModel {name} = {{",
           f"  {{{numbers(mean)}}},", f"  {{{numbers(scale)}}}, {{"]
    for p in networks:
        p = {k: np.asarray(v, float) for k, v in p.items()}
        out += [f"    {{{numbers(np.exp(p['launch']))}, {numbers(1 + np.exp(p['sharpness']))},",
                f"     {{{numbers(np.exp(p['term']))}}},", f"     {{{numbers(np.exp(p['body']))}}},",
                f"     {rows(p['first'])},", f"     {rows(p['first_bias'])},",
                f"     {rows(p['second'])},", f"     {{{numbers(p['second_bias'])}}},",
                f"     {{{numbers(p['last'])}}}}},"]
    out += ["  }", "};", "", "#endif", ""]
    with open(path, "w") as file:
        file.write("\n".join(out))


def say(label, lost):
    print(f"{label}: {100 * lost.mean():.2f} % lost on average, {100 * np.percentile(lost, 95):.1f} % at "
          f"the 95th percentile, {100 * lost.max():.1f} % at worst, {(lost > .1).sum()} of {len(lost)} "
          "above 10 %", flush=True)


def main():
    names, shapes, times = read()
    terms, features = facts(names, shapes)
    halves = np.arange(0, len(shapes), 2), np.arange(1, len(shapes), 2)
    half = fit(terms, features, times, halves[0], drawn(shapes, halves[0]))
    say("fitted to one half, judged on it", regret(half, terms, features, times, halves[0]))
    say("judged on the other half", regret(half, terms, features, times, halves[1]))
    guard = ["#ifndef PIPELINED_GEMM_%s_CUH", "#define PIPELINED_GEMM_%s_CUH", ""]
    write(os.path.join(ROOT, "tests/07_pipelined_gemm/half_model.cuh"), "half_model",
          "every second product", half, [g % "HALF_MODEL" if "%" in g else g for g in guard] +
          ['#include "../../07_pipelined_gemm/product/gemm_choose.cuh"'])
    every = np.arange(len(shapes))
    whole = fit(terms, features, times, every, drawn(shapes, every))
    say("fitted to all, judged on all", regret(whole, terms, features, times, np.arange(len(shapes))))
    write(os.path.join(CHAPTER, "product", "gemm_model.cuh"), "gemm_model", "all products", whole,
          [g % "GEMM_MODEL" if "%" in g else g for g in guard] + ['#include "gemm_choose.cuh"'])


if __name__ == "__main__":
    main()
