#!/usr/bin/env python3
"""mutations.py: changes one statement of a correct program, and lists what the emulator says.

  emulator/tests/long/mutations.py [--each N] [--count N] [--seed N] [--kind TEXT] [--part K/N]
                                   [--jobs N] [--csv FILE] [--reports] [PROGRAM...]
  emulator/tests/long/mutations.py --replay FILE [--part K/N] [--jobs N]

A program is an executable of this repository (build/05_multicast/multicast), also one of several
that were joined; without one, all lessons, fixed pitfalls and taken examples that are built. Its PTX
is plain text inside: a mutant is a copy with one change in that text. A longer statement takes the
room of names in .debug_str and of empty lines, so nothing is compiled. mutation_kinds.py has the changes.

Each mutant runs once, in the default order, with strict checks. Each line: program, kind, opcode, what
was changed, its number among those that are alike in the program, source line, and what came of it:
  named           the rules that were reported, without what the unchanged program reports
  wrong values    nothing is reported, but the program's verdict or output is another one
  not executed    no thread comes to the changed statement, or no branch is taken there
  equivalent      still right, for a reason in RULES or in tests/mutants/known.csv
  lenient         wrong by the PTX ISA; CHECKS.md says that it is not reported
  missed          none of these: to be judged, and then fixed or added there
  left out        the mutant is no PTX
With --reports the change and what was reported follow, for a person to judge.
--each takes at most N mutants of a kind in a program (0: all), --count at most N in all; each program and
kind has its turn before another's next, so these are samples of all. --seed chooses them. --part 2/5
takes every fifth, from the second on.
A table by kind ends the output. --csv writes all rows; mutation_score makes INSIDE.md's table of them.
--replay runs the mutants of such a file, and ends with 1 unless the first rule of each is reported.
"""
import argparse
import collections
import concurrent.futures
import csv
import glob
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from mutation_kinds import KINDS, SYNCHRONISES, WAIT, functions_of

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SECONDS = 60  # for one run
STEPS = "50000000"  # instructions of a cluster without a change: then it hangs
STARTING = threading.Lock()  # a file that another new process has open for writing cannot be started
NO_END = 124
OUTCOMES = ("named", "wrong values", "not executed", "equivalent", "lenient", "missed")
KNOWN = os.path.join(ROOT, "emulator/tests/mutants/known.csv")
REFUSED = re.compile(r"^emulator: (?!\d+ finding|[a-z0-9-]+: (error|strict|kernel|in kernel)).*", re.M)


def modules_of(data):
    """(first byte, last byte, text) of each PTX text in the executable."""
    place = 0
    while (begin := data.find(b".version ", place)) >= 0:
        begin = data.rfind(b"\0", 0, begin) + 1
        place = data.find(b"\0", begin)
        text = data[begin:place].decode("latin-1")
        if ".target" in text:
            yield begin, place, text


def mutant_of(data, module, edits):
    begin, end, text = module
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    # The names of inlined functions, which nobody reads, and empty lines make room.
    made = re.sub(r"\n\n+", "\n", re.sub(r"(?m)^\.b8 [\d,]+$", ".b8 0", text)).encode("latin-1")
    if len(made) > end - begin:
        raise ValueError("no room for a longer statement")
    return data[:begin] + made.ljust(end - begin, b"\0") + data[end:]


# ---- Still right, or wrong only on paper ----
def rule(outcome, reason, kinds, applies=lambda mutant: True):
    """Mutants of these kinds that pass, if `applies`."""
    return outcome, reason, lambda mutant: mutant.kind in kinds.split(", ") and applies(mutant)


def listed(row):
    """The rule of a line of known.csv: for these programs, or all, where the opcode and the change match its pattern."""
    programs = row["programs"].split()
    return rule(row["outcome"], row["reason"], row["kinds"], lambda mutant: (
        os.path.basename(mutant.program) in (programs or [os.path.basename(mutant.program)]) and
        re.search(row["pattern"], mutant.touched())))


RULES = [
    rule("lenient", "one warp's wgmma.wait_group counts for its whole warpgroup", "barrier deleted, neighbours swapped",
         lambda m: "bar.sync" in m.touched() and "wgmma.wait" in m.before() + m.opcode),
    rule("equivalent", "fence.mbarrier_init has released what the cluster barrier hands on", "release relaxed",
         lambda m: "cluster" in m.opcode and re.match(r"fence.mbarrier_init|mbarrier.arrive.expect|cp.async.bulk.shared", m.before())),
    rule("equivalent", "the last cluster barrier keeps memory alive and hands nothing on", "release relaxed",
         lambda m: not m.after(r"(ld|st|cp|mbarrier|red|atom)\b", 2)),
    rule("equivalent", "a later commit takes the copy into its group", "commit deleted, neighbours swapped",
         lambda m: ".commit" in m.after((r"wgmma" if "wgmma" in m.opcode else r"cp\.async\.(bulk\.)?") + ".?(commit|wait)")),
    rule("equivalent", "no thread reads what the stores write, so .read is enough", "group wait .read",
         lambda m: not m.after(r"ld\.(volatile\.|acquire\.\w+\.)?global")),
    rule("equivalent", "a prefetch changes nothing", "guard dropped, copy deleted",
         lambda m: "prefetch" in m.opcode + m.after(r"prefetch|mbarrier|cp\.|bar")),
    rule("equivalent", "the last cluster barrier does not wait for threads that have exited", "a warp leaves",
         lambda m: "cluster" in m.opcode and not m.after(r"(ld|st|cp|mbarrier|red|atom)\b")),
    rule("equivalent", "each block has waited for all that the others send to it before the last cluster barrier",
         "cluster barrier deleted, half of a cluster barrier deleted",
         lambda m: not m.after(r"mbarrier|cp\.|ld\.shared::cl|(st|red)\.async") and "before_exit" not in m.program),
    rule("equivalent", "the cluster barrier behind it orders the lanes, too", "__syncwarp deleted",
         lambda m: "barrier.cluster" in m.after()),
    rule("equivalent", "lanes come together to wait, and nothing is handed on", "__syncwarp deleted",
         lambda m: re.match(WAIT, m.after()) and m.before().startswith(("cp.async", "mbarrier.arrive"))),
    rule("equivalent", "no other instruction touches these registers after the fence of the product before",
         "wgmma.fence deleted", lambda m: any(each.opcode.startswith("wgmma.fence") for each in m.statements[:m.i])),
    rule("equivalent", "the fence.proxy.async behind it is for the init, too", "fence deleted, neighbours swapped",
         lambda m: "mbarrier_init" in m.touched() and m.after(r"fence\.proxy\.async|cp\.async\.bulk").startswith("fence")),
]
with open(KNOWN, encoding="utf-8") as known_file:  # what is wrong on paper comes first
    RULES = sorted([*RULES, *map(listed, csv.DictReader(known_file))], key=lambda each: each[0] != "lenient")


# ---- One mutant ----
class Mutant:
    """One change in a program, and what came of it."""
    def __init__(self, program, module, kind, change, statements, i):
        self.program, self.module, self.kind = program, module, kind
        self.what, self.edits = change
        self.statements, self.i = statements, i
        self.lines, self.opcode = statements[i].lines, statements[i].opcode
        self.number, self.outcome, self.reason, self.report, self.seconds = 0, "", "", "", 0

    def key(self):
        """The same as long as the program's code is."""
        return self.program, self.kind, self.opcode, self.what, str(self.number)

    def row(self):
        return [*self.key(), self.lines[0], self.outcome, self.reason]

    def touched(self):
        return f"{self.opcode} {self.what}"

    def before(self):
        """The synchronising statement before it."""
        return next((each.text for each in reversed(self.statements[:self.i]) if SYNCHRONISES.match(each.text)), "")

    def after(self, pattern=SYNCHRONISES, skipped=1):
        """The next statement that matches."""
        return next((each.text for each in self.statements[self.i + skipped:] if re.match(pattern, each.text)), "")

    def changes(self):
        """For a reader: what was there, and what has taken its place."""
        for first, last, new in self.edits:
            yield from ("- " + " ".join(self.module[2][first:last].split()), "+ " + (new or "(nothing)"))

    def trap(self):
        """The edit that ends the kernel if a thread executes the statement; a branch: if it is taken."""
        first, last, new = self.edits[0]
        if "exit;" in new:
            return first, last, new.replace("exit;", "trap;")
        return first, first, f"{self.statements[self.i].guard}trap; "


class Program:
    """An executable, or one of several in a joined one."""
    def __init__(self, path):
        self.path = os.path.relpath(path, ROOT)
        with open(path, "rb") as file:
            self.data = file.read()
        self.unchanged = None  # its Run

    def mutants(self, kinds):
        """Every change once for a source line: not in each copy of an unrolled loop or template."""
        name = os.path.basename(self.path)
        own = f"{len(name)}{name}" if os.path.islink(os.path.join(ROOT, self.path)) else ""
        seen, numbers = set(), collections.Counter()
        for module in modules_of(self.data):
            for function, statements in functions_of(module[2]):
                for i, kind in itertools.product(range(len(statements)), kinds if own in function else ()):
                    for change in KINDS[kind](statements, i):
                        made = Mutant(self.path, module, kind, change, statements, i)
                        same = kind, made.opcode, made.what
                        if (same, made.lines) not in seen:
                            seen.add((same, made.lines))
                            made.number = numbers[same]
                            numbers[same] += 1
                            yield made


Run = collections.namedtuple("Run", "rules code report output seconds")


def run(program, edits=(), module=None):
    """The program with these edits."""
    environment = dict(os.environ, EMULATOR_CHECK="strict", EMULATOR_THREADS="1", EMULATOR_STEPS=STEPS, EMULATOR_PATIENCE="0",
                       LD_LIBRARY_PATH=os.path.join(ROOT, "build/emulator"))
    environment.pop("EMULATOR_SCHEDULE", None)
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, os.path.basename(program.path))
        with STARTING:
            with open(path, "wb") as file:
                file.write(mutant_of(program.data, module, edits) if edits else program.data)
            os.chmod(path, 0o755)
            process = subprocess.Popen([path], env=environment, cwd=ROOT, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        began = time.monotonic()
        try:
            output, text = (part.decode("utf-8", "replace") for part in process.communicate(timeout=SECONDS))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return Run([], NO_END, "", "", SECONDS)
    rules = list(dict.fromkeys(re.findall(r"^emulator: ([a-z0-9-]+): (?:error|strict|kernel|in kernel)", text, re.M)))
    return Run(rules, process.returncode, text, output, time.monotonic() - began)


def judge(program, mutant):
    """Fills in outcome, reason and report."""
    try:
        done = run(program, mutant.edits, mutant.module)
    except ValueError as error:
        mutant.outcome, mutant.reason = "left out", str(error)
        return mutant
    mutant.report, mutant.seconds = done.report, done.seconds
    rules = [rule for rule in done.rules if rule not in program.unchanged.rules]
    if rules:
        mutant.outcome, mutant.reason = "named", " ".join(rules[:3])
    elif done.code == NO_END or done.code < 0:
        judge_by_rules(mutant, True, "no end" if done.code == NO_END else f"crash, signal {-done.code}")
    elif REFUSED.search(done.report):
        mutant.outcome, mutant.reason = "left out", REFUSED.search(done.report).group()
    elif done.code != program.unchanged.code or done.output != program.unchanged.output:
        mutant.outcome = "wrong values"
    elif not is_executed(program, mutant):
        mutant.outcome = "not executed"
    else:
        judge_by_rules(mutant, False, "passes")
    return mutant


def judge_by_rules(mutant, stops, otherwise):
    """stops: it has no end, or the program crashes; then only a wrong value may be the reason."""
    mutant.outcome, mutant.reason = next(((outcome, reason) for outcome, reason, applies in RULES
                                          if (outcome == "wrong values") == stops and applies(mutant)), ("missed", otherwise))


def is_executed(program, mutant):
    """A branch: is it ever taken?"""
    try:
        return "trap" in run(program, [mutant.trap()], mutant.module).rules
    except ValueError:
        return True


# ---- All of them ----
def chosen(programs, arguments):
    """The mutants to run: of each program and kind one, then of each another."""
    kinds = [kind for kind in KINDS if arguments.kind in kind]
    groups = collections.defaultdict(list)
    for program in programs:
        for mutant in program.mutants(kinds):
            groups[program.path, mutant.kind].append((program, mutant))
    for group in groups.values():
        random.Random(arguments.seed).shuffle(group)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*(g[:arguments.each or None] for g in groups.values())))
    return [pair for pair in turns if pair][:arguments.count or None]


def part_of(rows, arguments):
    part, parts = map(int, arguments.part.split("/"))
    return rows[part - 1::parts]


def default_programs():
    """The lessons that are built, the fixed pitfalls, and the examples of what make take writes; not what
    measures, or, as layouts, runs for minutes: its kernels are the library's, of which there is an example."""
    def found(patterns, wanted):
        return sorted(path for pattern in patterns for path in glob.glob(os.path.join(ROOT, "build", pattern)) if wanted(path))
    lessons = found(["0[1-7]_*/*", "0[1-7]_*/*/*"], lambda path: os.path.isfile(path) and os.access(path, os.X_OK) and
                    not re.search(r"speed|bench|price|layouts|/pitfalls/|/exercises/|/fixed/", path))
    return lessons + found(["tests/joined/0*/fixed/*", "tests/joined/0*/*/fixed/*", "tests/take/examples/*"], os.path.islink)


def print_table(mutants):
    print("\t".join(["kind", *OUTCOMES]))
    for kind in [*KINDS, "all"]:
        row = collections.Counter(m.outcome for m in mutants if kind in (m.kind, "all"))
        if row:
            print("\t".join([kind, *(str(row[outcome]) for outcome in OUTCOMES)]))


def run_all(pairs, arguments):
    """All of them judged, in the order of the programs; printed as they come."""
    used = {id(program): program for program, _ in pairs}.values()
    done = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for program, unchanged in zip(used, pool.map(run, used)):
            program.unchanged = unchanged
        begun = [pool.submit(judge, program, mutant) for program, mutant in pairs]
        for each in concurrent.futures.as_completed(begun):
            mutant = each.result()
            done.append(mutant)
            print("\t".join(map(str, mutant.row())), flush=True)
            if arguments.reports:
                print(*mutant.changes(), mutant.report, sep="\n", flush=True)
    return sorted(done, key=lambda m: (m.program, list(KINDS).index(m.kind), m.opcode, m.what, m.number))


def replay(arguments):
    with open(arguments.replay, encoding="utf-8") as file:
        rules = {tuple(row[:5]): row[7].split(" ")[0] for row in part_of(list(csv.reader(file)), arguments)}
    pairs = []
    for path in dict.fromkeys(key[0] for key in rules):
        program = Program(os.path.join(ROOT, path))
        pairs += [(program, m) for m in program.mutants([*KINDS]) if m.key() in rules]
    done = {m.key(): m for m in run_all(pairs, arguments)}
    wrong = 0
    for key, rule in rules.items():
        if key not in done or rule not in done[key].reason.split(" "):
            wrong += 1
            print(f"{' '.join(key)}: {rule} is recorded, but it is",
                  "gone: record again" if key not in done else done[key].outcome + " " + done[key].reason)
    print(f"{len(rules) - wrong} of {len(rules)} mutants are named as recorded")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name, default in (("each", 0), ("count", 0), ("seed", 1), ("jobs", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("kind", ""), ("part", "1/1"), ("csv", ""), ("replay", "")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--reports", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    if arguments.replay:
        return replay(arguments)
    programs = [Program(path) for path in arguments.programs or default_programs()]
    pairs = part_of(chosen(programs, arguments), arguments)
    done = run_all(pairs, arguments)
    print_table(done)
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([*mutant.row(), f"{mutant.seconds:.2f}"] for mutant in done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
