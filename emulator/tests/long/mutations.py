#!/usr/bin/env python3
"""mutations.py: changes single values and statements of correct programs, and lists what the
emulator says.

  emulator/tests/long/mutations.py [--count N] [--seed N] [--only TEXT] PROGRAM...

A program is an executable of this repository (build/05_multicast/multicast). Its PTX is plain text
inside, so a mutation of the same length is made in place and nothing is compiled: a number, a
removed statement, two statements swapped, a wait that is not repeated. Every mutant runs in the
late order. If no rule is named, it runs in three others. A rule that the unmutated program breaks
in that order, too, does not count.

Each line: the program and source line, the mutation, the rule that was named (with the order, if it
was not late), or what the program itself said: "wrong values", or "passes" if nobody noticed, or
"not executed" if no thread comes to what was changed.
The last lines count them. Nothing here is an error: a mutation may leave a program correct.
"""
import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

ORDERS = ["late", "random:1", "random:2", "early"]
SECONDS = 60
SPECIAL = re.compile(
    r"\b(mbarrier\.|cp\.async|cp\.reduce|fence\.|bar\.|barrier\.|wgmma\.(fence|commit|wait)|membar)")
WAIT = re.compile(r"\bmbarrier\.(try|test)_wait")
BRANCH_BACK = re.compile(r"^@!?%p\d+ bra (\$L\w+);$")
NUMBER = re.compile(r"^(mov\.[bus]\d+ (%r[sd]?\d+), )(\d+);$")
REACH = 12  # lines between a wait and its branch


class Statement:
    def __init__(self, start, text, line):
        self.start, self.text, self.line = start, text, line


def statements_of(data):
    """The statements of every PTX text in the executable, by function."""
    functions, place = [], 0
    while True:
        begin = data.find(b".version ", place)
        if begin < 0:
            return functions
        end = data.find(b"\0", begin)
        place, line, current = end, 0, []
        at = begin
        for raw in data[begin:end].split(b"\n"):
            text = raw.decode("latin-1")
            found = re.match(r"\.loc\s+\d+ (\d+) \d+(?:.*inlined_at \d+ (\d+))?", text)
            if found:
                line = int(found.group(2) or found.group(1))
            elif text.startswith(".loc"):
                pass
            elif re.match(r"(\.\w+ )*\.(entry|func)\b", text):
                current = []
                functions.append(current)
            elif text.strip():
                current.append(Statement(at, text, line))
            at += len(raw) + 1


def other_numbers(value):
    near = [value ^ 1, value + 1, value - 1] if value < 8 else [value // 2, value * 2, value - 16, value + 16]
    return [n for n in dict.fromkeys(near) if n >= 0 and n != value]


def mutations_of(function):
    """(source line, description, offset in the file, new bytes)."""
    special_text = " ".join(s.text for s in function if SPECIAL.search(s.text))
    used = set(re.findall(r"%r[sd]?\d+", special_text))

    def replaced(statement, text):
        return statement.start, text.ljust(len(statement.text)).encode()

    for i, statement in enumerate(function):
        text = statement.text
        number = NUMBER.match(text)
        if number and number.group(2) in used:
            for value in other_numbers(int(number.group(3))):
                new = f"{number.group(1)}{value};"
                if len(new) <= len(text):
                    user = next(s for s in function if SPECIAL.search(s.text) and
                                re.search(re.escape(number.group(2)) + r"\b", s.text))
                    what = user.text.split()[0]
                    yield user.line, f"{number.group(3)} -> {value} in {what}", replaced(statement, new)
        group = re.match(r"^(.*wait_group\S* )(\d)(;)$", text)
        if group:
            for value in other_numbers(int(group.group(2))):
                yield statement.line, f"{text[:-1]} -> {value}", replaced(
                    statement, f"{group.group(1)}{value};")
        if re.match(r"^xor\.b32 %r\d+, %r\d+, 1;$", text):
            yield statement.line, "parity not flipped", replaced(statement, text[:-2] + "0;")
        if "arrive.release" in text:
            yield statement.line, f"{text.split()[0].rstrip(';')} -> relaxed", replaced(
                statement, text.replace("arrive.release", "arrive.relaxed"))
        if WAIT.search(text):
            for later in function[i + 1:i + REACH]:
                if BRANCH_BACK.match(later.text):
                    yield statement.line, "wait asked once", replaced(later, "")
                    break
        elif SPECIAL.search(text) and text.endswith(";"):
            yield statement.line, f"without {text.split()[0].rstrip(';')}", replaced(statement, "")
            following = function[i + 1:i + 2]
            if following and SPECIAL.search(following[0].text) and not WAIT.search(
                    following[0].text) and following[0].text.endswith(";"):
                after = following[0]
                yield (statement.line,
                       f"{text.split()[0].rstrip(';')} after {after.text.split()[0].rstrip(';')}",
                       (statement.start, None, statement, after))


def mutant_of(data, change):
    if change[1] is not None:
        return data[:change[0]] + change[1] + data[change[0] + len(change[1]):]
    first, second = change[2], change[3]
    between = data[first.start + len(first.text):second.start]
    swapped = second.text.encode() + between + first.text.encode()
    return data[:first.start] + swapped + data[first.start + len(swapped):]


def is_executed(data, change, program, directory):
    """Does any thread come there? A trap in its place says so."""
    length = len(change[1] if change[1] is not None else change[2].text)
    if length < len("trap;"):
        return True
    with open(program, "wb") as file:
        file.write(mutant_of(data, (change[0], b"trap;".ljust(length))))
    return run(program, "late", directory)[1] != 0


def run(program, order, directory, known=()):
    environment = dict(os.environ, EMULATOR_SCHEDULE=order, EMULATOR_CHECK="strict",
                       EMULATOR_THREADS="1")
    try:
        done = subprocess.run(["emulator/emulate", program], env=environment, cwd=directory,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ["NO END"], 124, ""
    text = done.stderr.decode("utf-8", "replace")
    rules = list(dict.fromkeys(re.findall(r"^emulator: ([a-z0-9-]+)(?:: \w+ | in |: )", text, re.M)))
    rules = [rule for rule in rules if rule not in known]
    if done.returncode < 0:
        return [f"CRASH, signal {-done.returncode}"], done.returncode, text
    return rules, done.returncode, text


EXIT_FINDINGS = 3  # the program itself ended with 0


def of_unmutated(program, directory):
    """What the program reports without a mutation, by order."""
    return {order: run(os.path.abspath(program), order, directory)[0] for order in ORDERS}


def outcome_of(program, directory, known):
    outcomes = []
    for order in ORDERS:
        rules, code, text = run(program, order, directory, known[order])
        if known[order] and code == EXIT_FINDINGS:
            code = 0
        if rules:
            return "+".join(rules[:3]) + (f" ({order})" if order != "late" else ""), text
        outcomes.append(code)
    return ("passes" if not any(outcomes) else "wrong values"), ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--reports", action="store_true")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    directory = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
    every = []
    for program in arguments.programs:
        with open(program, "rb") as file:
            data = file.read()
        found = [m for function in statements_of(data) for m in mutations_of(function)]
        every += [(program, data) + m for m in found if arguments.only in f"{program}:{m[0]} {m[1]}"]
    random.Random(arguments.seed).shuffle(every)
    every = sorted(every[:arguments.count], key=lambda m: (m[0], m[2]))
    totals = collections.Counter()
    known = {program: of_unmutated(program, directory) for program in arguments.programs}
    with tempfile.TemporaryDirectory() as scratch:
        for program, data, line, what, change in every:
            mutant = os.path.join(scratch, os.path.basename(program))
            with open(mutant, "wb") as file:
                file.write(mutant_of(data, change))
            os.chmod(mutant, 0o755)
            outcome, text = outcome_of(mutant, directory, known[program])
            if outcome == "passes" and not is_executed(data, change, mutant, directory):
                outcome = "not executed"
            kind = ("named in another order" if "(" in outcome else
                    outcome if outcome in ("passes", "not executed", "wrong values", "NO END") or
                    outcome.startswith("CRASH") else "named")
            totals[kind] += 1
            print(f"{os.path.basename(program)}:{line}\t{what}\t{outcome}", flush=True)
            if arguments.reports:
                print(text, flush=True)
    for kind, count in totals.most_common():
        print(f"{count} of {len(every)}: {kind}")


if __name__ == "__main__":
    sys.exit(main())
