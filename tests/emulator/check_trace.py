#!/usr/bin/env python3
"""check_trace.py TRACE...: whether files in the Chrome trace format are well-formed: every field is there,
what lasts has an end, times of a counter never go back, and what lasts in one row does not overlap."""
import json
import sys


def check(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    rows, counters, names, problems = {}, {}, set(), []
    for event in events:
        row = event["pid"], event["tid"]
        kind = event["ph"]
        if kind == "M":
            names.add((event["name"], row))
        elif kind == "X":
            if event["dur"] < 0 or event["ts"] < 0:
                problems.append(f"a negative time: {event}")
            rows.setdefault(row, []).append((event["ts"], event["ts"] + event["dur"]))
        elif kind == "C":
            counter = event["pid"], event["name"]
            if counters.get(counter, 0) > event["ts"]:
                problems.append(f"{counter} goes back in time at {event['ts']}")
            counters[counter] = event["ts"]
            if not all(isinstance(value, int) for value in event["args"].values()):
                problems.append(f"not a number: {event}")
        elif kind != "i":
            problems.append(f"unknown kind {kind}")
    for row, spans in rows.items():
        if ("thread_name", row) not in names:
            problems.append(f"row {row} has no name")
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            if begin < end:
                problems.append(f"row {row}: one thing begins at {begin} before another ends at {end}")
    kinds = {event.get("cat") for event in events if event["ph"] in "Xi"}
    return problems, len(events), len(counters), kinds


for path in sys.argv[1:]:
    problems, count, counters, kinds = check(path)
    if problems:
        sys.exit(f"{path}: {len(problems)} problems: " + "; ".join(problems[:5]))
    print(f"{count} events, {counters} counters, {' '.join(sorted(kinds - {None}))}: well-formed")
