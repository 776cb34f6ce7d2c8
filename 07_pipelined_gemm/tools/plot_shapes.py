#!/usr/bin/env python3
"""plot_shapes.py: draws what bench_shapes measured: the ratio to the better library over the work of
a product, as SVG; and prints the geometric means and the worst ten.

    plot_shapes.py shapes.csv picture.svg
"""
import collections
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 380, 56, 24, 44
RATIOS = [0.4, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2, 3, 4]


def times_of_shapes(path):
    """By (m, n, k): the microseconds of each program."""
    with open(path) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        times = collections.OrderedDict()
        for row in rows:
            shape = int(row["m"]), int(row["n"]), int(row["k"])
            times.setdefault(shape, {})[row["program"]] = float(row["microseconds"])
    return times


def read(path):
    points = []
    for shape, programs in times_of_shapes(path).items():
        library = min(time for name, time in programs.items() if name.startswith("cublas"))
        name, ours = next(item for item in programs.items() if item[0].startswith("chosen:"))
        points.append((library / ours, shape, name.split(":")[1], ours, library))
    return points


def work(shape):
    return 2.0 * shape[0] * shape[1] * shape[2]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def draw(points, path):
    low, high = math.log10(min(work(p[1]) for p in points)), math.log10(max(work(p[1]) for p in points))
    bottom, top = math.log(RATIOS[0]), math.log(RATIOS[-1])

    def place(operations, ratio):
        x = LEFT + (math.log10(operations) - low) / (high - low) * (WIDTH - LEFT - 16)
        y = HEIGHT - BOTTOM - (math.log(ratio) - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)
        return x, max(TOP, min(HEIGHT - BOTTOM, y))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for ratio in RATIOS:
        _, y = place(10 ** low, ratio)
        color = "#444444" if ratio == 1 else "#dddddd"
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 16}" stroke="{color}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for power in range(math.ceil(low), math.floor(high) + 1):
        x, _ = place(10 ** power, 1)
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">1e{power}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">operations of a product'
               '</text><text x="8" y="16">time of the better library / time of pipelined_gemm</text>')
    for ratio, shape, name, _, _ in points:
        x, y = place(work(shape), ratio)
        aligned = shape[1] % 8 == 0 and shape[2] % 8 == 0
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{"#2364aa" if aligned else "#ea7317"}">'
                   f'<title>{shape[0]} x {shape[1]} x {shape[2]}: {ratio:.3f} by {name}</title></circle>')
    out.append(f'<text x="{WIDTH - 16}" y="16" text-anchor="end"><tspan fill="#2364aa">n and k multiples '
               'of 8</tspan>, <tspan fill="#ea7317">others</tspan></text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plot_shapes.py shapes.csv picture.svg")
    points = read(sys.argv[1])
    large = [p[0] for p in points if work(p[1]) >= 2.0 * 2048 ** 3]
    draw(points, sys.argv[2])
    print(f"{len(points)} products: geometric mean {geometric_mean([p[0] for p in points]):.3f}; "
          f"{len(large)} from 2048^3 up: {geometric_mean(large):.3f}; "
          f"{sum(p[0] < 0.9 for p in points)} below 0.9")
    for ratio, shape, name, ours, library in sorted(points)[:10]:
        print(f"  {ratio:.3f}  {shape[0]:6d} x {shape[1]:5d} x {shape[2]:5d}  {ours:9.1f} us by {name}, "
              f"library {library:.1f} us")


if __name__ == "__main__":
    main()
