#!/usr/bin/env python3
"""check_clock.py SIZE OUTPUT: compares what EMULATOR_CLOCK printed for clock_ladder with what was
measured on an H200 (emulator/clock/measured/ladder.csv). SIZE is m,n,k as in the table.

The tensor cores' busy share must be within 15 percentage points. Rungs whose measured times are more than
10 % apart must be in the measured order; at 8192,8192,8192 all must."""
import os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "common", "book"))
import tables

POINTS, APART = 15, 1.10


def main(size, output):
    measured, modelled = {}, {}
    apart = 1 if size == "8192,8192,8192" else APART
    for row in tables.records(os.path.join(ROOT, "emulator/clock/measured/ladder.csv")):
        if f"{row['m']},{row['n']},{row['k']}" == size:
            measured[row["rung"]] = float(row["us"]), float(row["tensor cores busy %"])
    with open(output) as file:
        text = file.read()
    for match in re.finditer(r"kernel (\w+)::.*?, ([\d.]+) us.*\n  busy: tensor cores ([\d.]+) %", text):
        modelled[match.group(1)] = float(match.group(2)), float(match.group(3))
    wrong = [f"{rung}: nothing was printed" for rung in measured if rung not in modelled]
    for rung in measured.keys() & modelled.keys():
        if abs(measured[rung][1] - modelled[rung][1]) > POINTS:
            wrong.append(f"{rung}: busy {modelled[rung][1]} %, measured {measured[rung][1]} %")
        for other in measured.keys() & modelled.keys():
            in_order = modelled[rung][0] > modelled[other][0]
            if measured[rung][0] > apart * measured[other][0] and not in_order:
                wrong.append(f"{rung} takes {modelled[rung][0]} us and {other} {modelled[other][0]} us, "
                             f"measured {measured[rung][0]} and {measured[other][0]}")
    for rung in sorted(measured.keys() & modelled.keys()):
        print(f"{rung}: {modelled[rung][0]} us, measured {measured[rung][0]}; tensor cores "
              f"{modelled[rung][1]} %, measured {measured[rung][1]} %")
    print("\n".join(["WRONG"] + wrong) if wrong or not measured else f"{len(measured)} rungs as measured")
    return 1 if wrong or not measured else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
