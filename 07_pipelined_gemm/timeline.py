#!/usr/bin/env python3
"""timeline.py TRACE.json PICTURE.svg [FROM TO]: draws what `pipelined_gemm --trace` recorded.

One line for each stage of the ring (being loaded, then held by the consumers) and two for each
consumer warpgroup (multiplying, storing). FROM and TO are clocks; without them the picture shows
the end of the first tile and the beginning of the second, where the stores are.
"""
import json
import sys

WIDTH, LEFT, ROW, BAR, TOP = 1100, 96, 26, 18, 34
COLOURS = {"load": "#9ecae1", "consume": "#3182bd", "multiply": "#31a354", "store": "#e6550d"}
MEANING = {"load": "stage: load on its way", "consume": "stage: held by the consumers",
           "multiply": "warpgroup: step issued until freed",
           "store": "warpgroup: writes half a tile"}


def main():
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    names, spans = {}, []
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            names[event["tid"]] = event["args"]["name"]
        else:
            begin = event["ts"] * 1000
            spans.append((event["tid"], event["name"], begin, begin + event["dur"] * 1000,
                          event["args"]["step"]))
    if len(sys.argv) == 5:
        first, last = float(sys.argv[3]), float(sys.argv[4])
    else:
        stores = [s for s in spans if s[1] == "store"]
        middle = stores[0][2] if stores else max(s[3] for s in spans) / 2
        first, last = middle - 6000, middle + 8000
    scale = (WIDTH - LEFT - 10) / (last - first)
    rows = sorted(names)
    height = TOP + ROW * len(rows) + 52
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="{LEFT}" y="18">{trace["otherData"]["product"]}: block 0, clocks '
           f'{first:.0f} to {last:.0f} of its SM</text>']
    for i, row in enumerate(rows):
        y = TOP + ROW * i
        out.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{names[row]}</text>')
        out.append(f'<line x1="{LEFT}" y1="{y + BAR + 2}" x2="{WIDTH - 10}" y2="{y + BAR + 2}" '
                   'stroke="#dddddd"/>')
    for row, name, begin, end, step in spans:
        if end <= first or begin >= last:
            continue
        x0, x1 = (LEFT + (max(first, min(last, t)) - first) * scale for t in (begin, end))
        y = TOP + ROW * rows.index(row)
        out.append(f'<rect x="{x0:.1f}" y="{y}" width="{max(x1 - x0, 1):.1f}" height="{BAR}" '
                   f'fill="{COLOURS[name]}" stroke="white" stroke-width="0.5">'
                   f'<title>{name}, step {step}: {end - begin:.0f} clocks</title></rect>')
        if x1 - x0 > 24 and name in ("consume", "multiply"):
            out.append(f'<text x="{(x0 + x1) / 2:.1f}" y="{y + 13}" text-anchor="middle" '
                       f'fill="white" font-size="10">{step}</text>')
    y = TOP + ROW * len(rows) + 8
    ticks = 1000 if last - first <= 20000 else 10000
    t = -(-first // ticks) * ticks
    while t <= last:
        x = LEFT + (t - first) * scale
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y}" stroke="#eeeeee"/>')
        out.append(f'<text x="{x:.1f}" y="{y + 10}" text-anchor="middle" font-size="10">'
                   f'{t:.0f}</text>')
        t += ticks
    x = LEFT
    for name, colour in COLOURS.items():
        out.append(f'<rect x="{x}" y="{y + 20}" width="14" height="14" fill="{colour}"/>')
        out.append(f'<text x="{x + 19}" y="{y + 31}">{MEANING[name]}</text>')
        x += 40 + 7 * len(MEANING[name])
    out.append("</svg>")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


main()
