#!/usr/bin/env python3
"""plot_shapes.py: draws what bench_shapes measured: the ratio to the better library over the work of
a product, as SVG; and prints the geometric means and the worst ten, once for the configurations that the model
chooses and once for those of the measured plans.

    plot_shapes.py shapes.csv picture.svg
"""
import collections
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 380, 56, 24, 44
RATIOS = [0.4, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2, 3, 4]
PLANS = {"chosen": "chosen by the model", "measured": "chosen by measuring"}  # by what bench_shapes calls them


def times_of_shapes(path):
    """By (m, n, k): the microseconds of each program."""
    with open(path) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        times = collections.OrderedDict()
        for row in rows:
            shape = int(row["m"]), int(row["n"]), int(row["k"])
            times.setdefault(shape, {})[row["program"]] = float(row["microseconds"])
    return times


def read(times, plan):
    """The ratio, shape, configuration, our time and the library's, of each product that has this plan."""
    points = []
    for shape, programs in times.items():
        library = min(time for name, time in programs.items() if name.startswith("cublas"))
        for name, ours in programs.items():
            if name.startswith(plan + ":"):
                points.append((library / ours, shape, name.split(":")[1], ours, library))
    return points


def work(shape):
    return 2.0 * shape[0] * shape[1] * shape[2]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def draw(points, measured, path):
    """What the model chooses is a dot. A line leads from it to a ring, the measured plan, if that differs."""
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
    kept = {shape: (ratio, name) for ratio, shape, name, _, _ in measured}
    for ratio, shape, name, _, _ in points:
        x, y = place(work(shape), ratio)
        aligned = shape[1] % 8 == 0 and shape[2] % 8 == 0
        color = "#2364aa" if aligned else "#ea7317"
        sizes = f"{shape[0]} x {shape[1]} x {shape[2]}"
        better, other = kept.get(shape, (ratio, name))
        if other != name:
            _, ring = place(work(shape), better)
            out.append(f'<path d="M{x:.1f} {y:.1f}V{ring:.1f}" stroke="{color}"/>')
            out.append(f'<circle cx="{x:.1f}" cy="{ring:.1f}" r="3" fill="#ffffff" stroke="{color}">'
                       f'<title>{sizes}: {better:.3f} by {other}, measured</title></circle>')
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}">'
                   f'<title>{sizes}: {ratio:.3f} by {name}</title></circle>')
    rings = "; ring: what measuring keeps, if that is another one" if measured else ""
    out.append(f'<text x="{LEFT + 8}" y="{HEIGHT - BOTTOM - 8}">dot: the configuration that the model chooses{rings}</text>')
    out.append(f'<text x="{WIDTH - 16}" y="16" text-anchor="end"><tspan fill="#2364aa">n and k multiples '
               'of 8</tspan>, <tspan fill="#ea7317">others</tspan></text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")


def summarize(points, plan):
    large = [p[0] for p in points if work(p[1]) >= 2.0 * 2048 ** 3]
    print(f"{plan}: {len(points)} products: geometric mean {geometric_mean([p[0] for p in points]):.3f}; "
          f"{len(large)} from 2048^3 up: {geometric_mean(large):.3f}; "
          f"{sum(p[0] < 0.9 for p in points)} below 0.9; the worst ten:")
    for ratio, shape, name, ours, library in sorted(points)[:10]:
        print(f"  {ratio:.3f}  {shape[0]:6d} x {shape[1]:5d} x {shape[2]:5d}  {ours:9.1f} us by {name}, "
              f"library {library:.1f} us")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plot_shapes.py shapes.csv picture.svg")
    times = times_of_shapes(sys.argv[1])
    points = {plan: read(times, plan) for plan in PLANS}
    draw(points["chosen"], points["measured"], sys.argv[2])
    for plan, name in PLANS.items():
        if points[plan]:
            summarize(points[plan], name)
    planning = sorted(programs["planning"] for programs in times.values() if "planning" in programs)
    if planning:
        print(f"a measured plan took {planning[len(planning) // 2] / 1000:.1f} ms in the median, "
              f"{planning[-1] / 1000:.1f} ms at most")


if __name__ == "__main__":
    main()
