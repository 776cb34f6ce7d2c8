#!/usr/bin/env python3
"""check_ratios.py copies TILE OUTPUT...    TILE 64x64 and so on, OUTPUT of clock_copies under the clock
check_ratios.py stream CLUSTER OUTPUT     OUTPUT of clock_stream under the clock

Compares ratios of modelled times with those that an H200 took (03_tma_store/measured/copy_speed.csv,
05_multicast/measured/shared_stream.csv): each way of copying over the vector loads and stores, each
way of streaming over separate loads. They must agree within 10 %, and where threads load word by word, or fence
for each arrival, which the clock knows less well, within ROUGH."""
import os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "common", "book"))
import tables

MOST = 0.10
ROUGH = {"scalar": 0.22, "scoped": 0.20}


def modelled(text):
    """{kernel: microseconds of its launches}"""
    found = re.findall(r"kernel (\w+):.*\n(?:  (?:busy|warps).*\n)*  launches: ([\d. ]+) us", text)
    return {kernel: [float(t) for t in times.split()] for kernel, times in found}


def copies(tile, text):
    times = modelled(text)
    tma = times["copy_tiles"]  # three ways, two launches each; the second finds the matrix in L2
    model = {way: times[f"{way}_{tile}"][1] for way in ("vectors", "scalar", "cp_async")}
    model.update({"tma one stage": tma[1], "tma stages": tma[3], "tma 48 KiB flying": tma[5]})
    measured = {r["way"]: float(r["us"]) for r in tables.measured("03_tma_store", "copy_speed").records()
                if r["size"] == "16 MiB" and r["tile"] == tile}
    return [(way, model[way] / model["vectors"], measured[way] / measured["vectors"]) for way in model]


def stream(cluster, text):
    times = modelled(text)["stream_kernel"]  # two launches of each way
    model = {"separate": times[1], "multicast": times[3], "scoped": times[5]}
    measured = {r["way"]: float(r["us"]) for r in tables.measured("05_multicast", "shared_stream").records()
                if r["MiB"] == "16" and r["cluster"] == cluster}
    return [(way, model["separate"] / model[way], measured["separate"] / measured[way]) for way in model]


def main(kind, which, path):
    with open(path) as file:
        text = file.read()
    wrong = 0
    for way, ratio, expected in (copies if kind == "copies" else stream)(which, text):
        bad = not abs(ratio - expected) <= ROUGH.get(way, MOST) * expected
        wrong += bad
        print(f"{which} {way}: {ratio:.2f}, measured {expected:.2f}{' WRONG' if bad else ''}")
    print("all as near as they must be" if not wrong else f"{wrong} WRONG")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("copies", "stream"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
