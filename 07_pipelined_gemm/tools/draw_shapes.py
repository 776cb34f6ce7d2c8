#!/usr/bin/env python3
"""draw_shapes.py: draws random products for the fit, or to judge it, as lines "m n k".

    draw_shapes.py fit 9000 30 > shapes.txt             for the fit, with seed 30; none of shapes_unseen*.txt
    draw_shapes.py unseen 137 40 > shapes_unseen3.txt   to judge it; none that was measured for the fit

Products for the fit are of four kinds: sizes whose logarithms are uniform from 16 to 16,384, most of them
multiples of 8; layers of language models; narrow ones, with a small m or n or a short k; and ones with an m or n
of 192 to 1,200, of which the choice lost most.
Those to judge it are of the first two kinds, as in shapes_unseen.txt: 110 and 27.
"""
import csv
import glob
import math
import os
import random
import sys

TOOLS = os.path.dirname(os.path.abspath(__file__))
LAYERS = [(4096, 4096), (6144, 4096), (14336, 4096), (28672, 4096), (4096, 14336), (12288, 4096), (11008, 4096),
          (22016, 4096), (4096, 11008), (8192, 8192), (10240, 8192), (28672, 8192), (8192, 28672), (5120, 5120),
          (13824, 5120), (5120, 13824), (15360, 5120), (27648, 5120), (3584, 3584), (18944, 3584), (3584, 18944),
          (4608, 3584), (2048, 2048), (8192, 2048), (2048, 8192), (3072, 3072), (8192, 3072), (3072, 8192),
          (5120, 3072), (2560, 2560), (10240, 2560), (2560, 10240), (7168, 2048), (2048, 7168), (7168, 7168),
          (18432, 7168), (7168, 18432), (1536, 7168), (24576, 1536), (7168, 16384), (4096, 7168), (1024, 4096),
          (2816, 1024), (1024, 2816), (4096, 1024), (3072, 768), (768, 3072), (2304, 768), (16384, 4096),
          (4096, 16384), (5376, 5376), (21504, 5376), (8960, 1536), (1536, 8960), (4864, 896), (896, 4864)]
OTHER_LAYERS = [(12800, 5120), (6912, 5120), (5120, 6912), (16896, 6656), (6656, 16896), (9728, 2560), (2560, 9728),
                (6144, 1792), (1792, 6144), (10752, 3584), (3584, 10752), (7680, 6144), (6144, 12288)]
BATCHES = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 100, 112, 128, 160, 192, 200, 224, 256, 300, 320, 384, 448,
           500, 512, 600, 640, 768, 896, 1000, 1024, 1280, 1500, 1536, 2000, 2048, 2560, 3000, 3072, 4000, 4096, 5000,
           6000, 6144, 8192]
MOST = 6e11  # multiplications: 1.6 ms
SMALL = 1e9  # fewer of these for the fit


def logarithmic(least, most):
    return int(round(math.exp(random.uniform(math.log(least), math.log(most)))))


def eights(value, share):
    """Most sizes are multiples of 8, and many of these of 64 or 128."""
    draw = random.random()
    if draw > share:
        return value
    unit = 8 if draw > 0.35 * share or value < 256 else random.choice((64, 128, 256))
    return max(8, round(value / unit) * unit)


def any_size():
    return (logarithmic(16, 16384), eights(logarithmic(16, 16384), 0.92), eights(logarithmic(16, 16384), 0.94))


def layer(layers):
    n, k = random.choice(layers)
    return random.choice(BATCHES), n, k


def narrow():
    m, n, k = logarithmic(16, 512), eights(logarithmic(512, 16384), 0.95), eights(logarithmic(256, 16384), 0.96)
    kind = random.random()
    if kind < 0.35:
        return m, n, k
    if kind < 0.6:
        return n, eights(m, 0.95), k
    return (logarithmic(512, 16384), n, eights(logarithmic(16, 512), 0.95))


def middle():
    m, n, k = logarithmic(192, 1200), eights(logarithmic(128, 16384), 0.95), eights(logarithmic(128, 16384), 0.95)
    return (m, n, k) if random.random() < 0.6 else (n, eights(m, 0.95), k)


def known(names):
    found = set()
    for name in names:
        for path in glob.glob(os.path.join(TOOLS, name)):
            with open(path) as file:
                found |= {tuple(int(x) for x in line.split()) for line in file}
    return found


def fitted():
    found = set()
    for table in ("configurations.csv", "streamed.csv", "hot.csv", "epilogues.csv"):
        with open(os.path.join(TOOLS, "..", "measured", table)) as file:
            rows = csv.DictReader(line for line in file if not line.startswith("#"))
            found |= {tuple(int(row[x]) for x in "mnk") for row in rows}
    return found


def draw(purpose, count, seed):
    random.seed(seed)
    taken = known(["shapes_unseen*.txt"]) | fitted()
    drawn = []
    while len(drawn) < count:
        kind = len(drawn) / count if purpose == "unseen" else random.random()
        if purpose == "unseen":
            product = any_size() if kind < 0.8 else layer(OTHER_LAYERS)
        else:
            product = (any_size() if kind < 0.5 else layer(LAYERS) if kind < 0.68 else
                       narrow() if kind < 0.84 else middle())
        size = product[0] * product[1] * product[2]
        if product in taken or size > MOST or purpose == "fit" and size < SMALL and random.random() < 0.35:
            continue
        taken.add(product)
        drawn.append(product)
    return drawn


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("fit", "unseen"):
        sys.exit("usage: draw_shapes.py fit|unseen COUNT SEED")
    print("\n".join("%d %d %d" % product for product in draw(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))


if __name__ == "__main__":
    main()
