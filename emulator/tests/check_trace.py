#!/usr/bin/env python3
"""check_trace.py TRACE...: whether files hold what the Chrome trace format asks for: every field of each kind of
event, of the right type; a name for each process and each row that events are in; in a row nothing overlaps and
nothing goes back in time; nor does a counter."""
import json
import sys

WHOLE = (int,)
TEXT = (str,)
# kind: {field: types}; "ts" and "dur" may be fractions by the format, ours are whole numbers
FIELDS = {
    "M": {"name": TEXT, "pid": WHOLE, "tid": WHOLE, "args": (dict,)},
    "X": {"name": TEXT, "cat": TEXT, "pid": WHOLE, "tid": WHOLE, "ts": WHOLE, "dur": WHOLE},
    "i": {"name": TEXT, "cat": TEXT, "pid": WHOLE, "tid": WHOLE, "ts": WHOLE, "s": TEXT},
    "C": {"name": TEXT, "pid": WHOLE, "tid": WHOLE, "ts": WHOLE, "args": (dict,)},
}


def fields_of(event):
    """What is wrong with the fields of one event."""
    kind = event.get("ph")
    if kind not in FIELDS:
        return [f"unknown kind {kind!r}"]
    wrong = [f"{kind} without {name}" for name in FIELDS[kind] if name not in event]
    wrong += [f"{kind} with {name}, which it has not" for name in event if name != "ph" and name not in FIELDS[kind]]
    for name, types in FIELDS[kind].items():
        value = event.get(name)
        if value is not None and (not isinstance(value, types) or isinstance(value, bool)):
            wrong.append(f"{name} is {value!r}")
        if types == TEXT and value == "":
            wrong.append(f"{name} is empty")
    if min(event.get("ts", 0), event.get("dur", 0)) < 0:
        wrong.append("a negative time")
    if kind == "i" and event.get("s") not in ("t", "p", "g"):
        wrong.append(f"s is {event.get('s')!r}")
    if kind == "C" and not all(isinstance(value, (int, float)) for value in event.get("args", {}).values()):
        wrong.append("a counter that is not a number")
    if kind == "M" and (event["name"] not in ("process_name", "thread_name") or not event["args"].get("name")):
        wrong.append("neither a process nor a thread is named")
    return [f"{text}: {event}" for text in wrong]


def no_repeats(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"a name twice in one object: {names}")
    return dict(pairs)


def check(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file, object_pairs_hook=no_repeats)["traceEvents"]
    problems = [text for event in events for text in fields_of(event)]
    if problems:
        return problems, 0, 0, set()
    ends, counters, instants, processes, rows = {}, {}, {}, set(), set()
    for event in events:
        row = event["pid"], event["tid"]
        kind = event["ph"]
        if kind == "M":
            known, key = (processes, event["pid"]) if event["name"] == "process_name" else (rows, row)
            if key in known:
                problems.append(f"named twice: {event}")
            known.add(key)
            continue
        if event["pid"] not in processes:
            problems.append(f"process {event['pid']} has no name when it begins: {event}")
        last, key = {"X": (ends, row), "i": (instants, row), "C": (counters, (event["pid"], event["name"]))}[kind]
        if last.get(key, 0) > event["ts"]:
            problems.append(f"{key} goes back from {last[key]}: {event}")
        last[key] = event["ts"] + event.get("dur", 0)
    problems += [f"row {row} has no name" for row in (set(ends) | set(instants)) - rows]
    problems += [f"row {row} has a name and nothing in it" for row in rows - set(ends) - set(instants)]
    return problems, len(events), len(counters), {event.get("cat") for event in events if event["ph"] in "Xi"}


for path in sys.argv[1:]:
    problems, count, counters, kinds = check(path)
    if problems:
        sys.exit(f"{path}: {len(problems)} problems: " + "; ".join(problems[:5]))
    print(f"{count} events, {counters} counters, {' '.join(sorted(kinds))}: well-formed")
