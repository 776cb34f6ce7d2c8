#!/usr/bin/env python3
"""shapes.py: draws the products that bench_shapes measures, and shows what it found.

    shapes.py draw SEED > shapes.txt               100 products, as lines "m n k"
    shapes.py plot shapes.csv picture.svg          the ratio to the better library over the size of a product, and
                                                   the means of the classes
    shapes.py table shapes.csv versus.csv          TFLOP/s of each product, for the README

The sizes' logarithms are uniform from 16 to 16,384, n and k multiples of 8. 30 of the 100 have at least 2048^3
multiplications, 20 have at most 64 rows, 15 a k of at most 256, 15 a k that is no multiple of 8, so that TMA cannot
read the rows, and 20 are others.
"""
import collections
import csv
import math
import random
import sys

LARGE = 2048 ** 3  # multiplications
MOST = 6e11  # 1.6 ms
CLASSES = collections.OrderedDict([("from 2048^3 up", 30), ("at most 64 rows", 20), ("k at most 256", 15),
                                   ("rows TMA cannot read", 15), ("others", 20)])
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 340, 56, 24, 44
RATIOS = [0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2, 3]
COLORS = ["#2364aa", "#3da35d", "#b5179e", "#ea7317", "#555555"]


def class_of(shape):
    m, n, k = shape
    if k % 8 != 0:
        return "rows TMA cannot read"
    if m * n * k >= LARGE:
        return "from 2048^3 up"
    return "at most 64 rows" if m <= 64 else "k at most 256" if k <= 256 else "others"


def draw_shapes(seed):
    generator = random.Random(seed)

    def size(unit):
        value = math.exp(generator.uniform(math.log(16), math.log(16384)))
        return max(unit, round(value / unit) * unit)

    wanted, drawn = dict(CLASSES), []
    while any(wanted.values()):
        unaligned = generator.random() < 0.2
        shape = size(1), size(8), size(1) if unaligned else size(8)
        kind = class_of(shape)
        if wanted[kind] > 0 and shape[0] * shape[1] * shape[2] <= MOST:
            wanted[kind] -= 1
            drawn.append(shape)
    return drawn


def times_of_shapes(path):
    """By (m, n, k): the microseconds of each program."""
    with open(path) as file:
        times = collections.OrderedDict()
        for m, n, k, programs in list(csv.reader(line for line in file if not line.startswith("#")))[1:]:
            times[int(m), int(n), int(k)] = {name: float(time) for name, time in map(str.split, programs.split(";"))}
    return times


def ours(programs, plan):
    """The configuration of a plan, and its ratio to the better library."""
    library = min(time for name, time in programs.items() if name.startswith("cublas"))
    name, time = next(item for item in programs.items() if item[0].startswith(plan + ":"))
    return name.split(":")[1], library / time


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summarize(times):
    print("class                  products   by the choice: mean, least   by measuring: mean, least")
    for kind in CLASSES:
        shapes = [shape for shape in times if class_of(shape) == kind]
        if not shapes:
            continue
        chosen, measured = ([ours(times[shape], plan)[1] for shape in shapes] for plan in ("chosen", "measured"))
        print(f"{kind:22s} {len(shapes):8d} {mean(chosen):20.3f}, {min(chosen):.3f} {mean(measured):20.3f}, {min(measured):.3f}")
    print("the lowest five by measuring:")
    for shape in sorted(times, key=lambda shape: ours(times[shape], "measured")[1])[:5]:
        name, ratio = ours(times[shape], "measured")
        print(f"  {ratio:.3f}  {shape[0]:6d} x {shape[1]:5d} x {shape[2]:5d}  by {name}")


def plot(times, path):
    """What measuring keeps is a dot. A line leads from it to a ring, what the choice takes, if that differs."""
    work = {shape: math.log10(2.0 * shape[0] * shape[1] * shape[2]) for shape in times}
    low, high = min(work.values()), max(work.values())
    bottom, top = math.log(RATIOS[0]), math.log(RATIOS[-1])

    def place(power, ratio):
        x = LEFT + (power - low) / (high - low) * (WIDTH - LEFT - 16)
        y = HEIGHT - BOTTOM - (math.log(ratio) - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)
        return x, max(TOP, min(HEIGHT - BOTTOM, y))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for ratio in RATIOS:
        _, y = place(low, ratio)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 16}" stroke="{"#444444" if ratio == 1 else "#dddddd"}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for power in range(math.ceil(low), math.floor(high) + 1):
        x, _ = place(power, 1)
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">1e{power}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">operations of a product</text>'
               '<text x="8" y="16">time of the better library / our time</text>')
    dots, rings = [], dict.fromkeys(COLORS, "")
    for shape, programs in times.items():
        color = COLORS[list(CLASSES).index(class_of(shape))]
        (name, ratio), (other, chosen) = ours(programs, "measured"), ours(programs, "chosen")
        x, y = place(work[shape], ratio)
        if other != name:
            _, ring = place(work[shape], chosen)
            rings[color] += f"M{x:.1f} {y:.1f}V{ring:.1f}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0"
        dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"><title>{shape[0]} x {shape[1]} x {shape[2]}: '
                    f'{ratio:.3f} by {name}; chosen: {chosen:.3f} by {other}</title></circle>')
    out += [f'<path d="{path_of_rings}" stroke="{color}" fill="#ffffff"/>' for color, path_of_rings in rings.items()]
    out += dots
    legend = ", ".join(f'<tspan fill="{color}">{kind}</tspan>' for kind, color in zip(CLASSES, COLORS))
    out.append(f'<text x="{WIDTH - 16}" y="16" text-anchor="end">{legend}</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")


def tabulate(times, path):
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["m x n x k", "cuBLAS", "cuBLASLt best", "by the choice", "its ratio", "by measuring", "ratio", "configuration"])
        for (m, n, k), programs in times.items():
            cublas = programs["cublas"]
            better = min(time for name, time in programs.items() if name.startswith("cublas"))
            cublaslt = min((t for p, t in programs.items() if p.startswith("cublaslt")), default=cublas)
            speed = 2e-6 * m * n * k
            (_, chosen), (name, measured) = ours(programs, "chosen"), ours(programs, "measured")
            table.writerow([f"{m} x {n} x {k}", f"{speed / cublas:.1f}", f"{speed / cublaslt:.1f}",
                            f"{speed / better * chosen:.1f}", f"{chosen:.3f}", f"{speed / better * measured:.1f}",
                            f"{measured:.3f}", name])


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "draw":
        print("\n".join("%d %d %d" % shape for shape in draw_shapes(int(sys.argv[2]))))
    elif len(sys.argv) == 4 and sys.argv[1] == "plot":
        times = times_of_shapes(sys.argv[2])
        plot(times, sys.argv[3])
        summarize(times)
    elif len(sys.argv) == 4 and sys.argv[1] == "table":
        tabulate(times_of_shapes(sys.argv[2]), sys.argv[3])
    else:
        sys.exit("usage: shapes.py draw SEED | plot shapes.csv picture.svg | table shapes.csv versus.csv")


if __name__ == "__main__":
    main()
