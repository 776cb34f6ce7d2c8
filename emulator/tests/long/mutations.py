#!/usr/bin/env python3
"""mutations.py: changes one statement of a correct program, and lists what the emulator says.

  emulator/tests/long/mutations.py [--each N] [--count N] [--seed N] [--kind TEXT] [--part K/N]
                                   [--jobs N] [--seconds N] [--csv FILE] [--reports] [PROGRAM...]
  emulator/tests/long/mutations.py --read FOLDER [--count N] [--seed N] [--jobs N] [PROGRAM...]
  emulator/tests/long/mutations.py --replay FILE [--part K/N] [--jobs N]

A program is an executable of this repository (build/05_multicast/multicast), also one of several
that were joined; without one, all lessons, fixed pitfalls and taken examples that are built. Its PTX
is plain text inside: a mutant is a copy with one change in that text. A longer statement takes the
room of names in .debug_str and of empty lines, so nothing is compiled. KINDS lists the changes.

Each mutant runs once, in the default order, with strict checks. Each line: program, kind, opcode, what
was changed, its number among those that are alike in the program, source line, and what came of it:
  named           the rules that were reported, without what the unchanged program reports
  wrong values    nothing is reported, but the program's verdict or output is another one
  not executed    no thread comes to the changed statement, or no branch is taken there
  equivalent      still right, by a rule or a reason in KNOWN
  lenient         wrong by the PTX ISA; CHECKS.md says that it is not reported
  missed          none of these: to be judged, and then fixed or added to KNOWN
  left out        the mutant is no PTX
--each takes at most N mutants of a kind in a program (0: all), --count at most N in all, --seconds
stops starting more; each program and kind has its turn before another's next, so these are
samples of all. --seed chooses them. --part 2/5 takes every fifth, from the second on.
A table by kind ends the output. --csv writes all rows; mutation_score makes the README's table of them.
--read writes N named mutants (default: 240), of each kind as many, to files that a person can judge: the
change, its source line, and the report.
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

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SECONDS = 60  # for one run
STEPS = "50000000"  # instructions of a cluster without a change: then it hangs
STARTING = threading.Lock()  # a file that another new process has open for writing cannot be started
NO_END = 124
OUTCOMES = ("named", "wrong values", "not executed", "equivalent", "lenient", "missed")
REFUSED = re.compile(r"^emulator: (?!\d+ finding|[a-z0-9-]+: (error|strict|kernel|in kernel)).*", re.M)
ANY_TOKEN = re.compile(r"""//[^\n]* | /\*.*?\*/
  | \.loc[ \t]+(?P<file>\d+)[ \t]+(?P<line>\d+)(?:[^\n]*inlined_at[ \t]+(?P<outer_file>\d+)[ \t]+(?P<outer>\d+))?[^\n]*
  | (?:\.(?:visible|weak|extern)[ \t]+)*\.(?:entry|func)\b[ \t]*(?:\([^)]*\)[ \t]*)?(?P<name>[\w$]+)
  | \.reg\b[^;]*; | \.[a-z][^\n]* | [{}] | (?P<label>[\w$]+):
  | (?P<statement>(?P<guard>@!?[%\w$]+\s+)?[a-z][\w.:]*(?:\s[^;]*)?;)""", re.X | re.S)
SYNCHRONISES = re.compile(r"(@\S+ )?(mbarrier\.|cp\.async|cp\.reduce|fence\.|bar\.|barrier\.|membar|red\.async|st\.async|"
                          r"wgmma\.(fence|commit|wait)|griddepcontrol)")
GUARDS_AT_MOST = 40  # statements that a dropped guard skips
REACH = 12  # from a wait to the branch that repeats it


class Statement:
    """One statement of PTX: where it is in the text, without and with its guard (@%p1)."""
    def __init__(self, found, lines, places):
        self.start, self.end = found.span("statement")
        self.guard = found.group("guard") or ""
        self.text = " ".join(found.group("statement")[len(self.guard):].split())
        self.lines = lines  # of the kernel, and of the functions that are inlined there
        self.places = places  # (number of its file, line) of the innermost of these, and of its call
        self.opcode = self.text.split(" ")[0].rstrip(";")
        self.target = -1  # of a branch: where its label is

    def changed(self, text):
        """The edit that puts this text in its place."""
        return self.start, self.end, f"{self.guard}{text}" if text else ""

    def with_operand(self, operand, change):
        """The same with a changed operand: `change` computes %mutant from it."""
        wide = operand.startswith("%rd")
        narrow = operand.startswith("%rs")
        bits = 64 if wide else 16 if narrow else 32
        text = re.sub(re.escape(operand) + r"(?!\w)", "%mutant", self.text) if operand.startswith("%") else \
            re.sub(r"(?<![\w.])" + re.escape(operand) + r"(?=;$)", "%mutant", self.text)
        made = change.format(bits=bits, operand=operand)
        return self.start, self.end, f"{{ .reg .b{bits} %mutant; {made}; {self.guard}{text} }}"


def functions_of(text):
    """(name, statements) of each function of a PTX text."""
    functions, lines, places, labels = [], (0, 0, 0), [], {}
    for found in ANY_TOKEN.finditer(text):
        if found.group("name"):
            functions.append((found.group("name"), []))
        elif found.group("line"):
            inner, outer = int(found.group("line")), int(found.group("outer") or 0)
            places = [(found.group("file"), inner), (found.group("outer_file"), outer)]
            lines = (lines[0], outer, inner) if outer else (inner, 0, 0)
        elif found.group("label"):
            labels[found.group("label")] = found.start()
        elif found.group("statement") and functions:
            functions[-1][1].append(Statement(found, lines, places))
    for statement in (each for _, statements in functions for each in statements):
        if statement.opcode.startswith("bra"):
            statement.target = labels.get(statement.text.split(" ")[-1].rstrip(";"), -1)
    return functions


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


# ---- The kinds of change ----
# A kind is a function of (statements of a function, index): it yields (what, edits).
def replaced(opcode, *changes):
    """A statement whose text matches: each change (what, pattern, text) that alters it."""
    def kind(statements, i):
        statement = statements[i]
        if re.match(opcode, statement.text):
            for what, pattern, text in changes:
                new = re.sub(pattern, text, statement.text, count=1)
                if new != statement.text:
                    yield what, [statement.changed(new)]
    return kind


def deleted(opcode):
    return replaced(opcode, ("deleted", r"^.*$", ""))


def operand(opcode, pattern, *changes):
    """An operand, group 1 of the pattern: each change (what, statement that computes %mutant)."""
    def kind(statements, i):
        statement = statements[i]
        found = re.search(pattern, statement.text) if re.match(opcode, statement.text) else None
        if found:
            for what, change in changes:
                yield what, [statement.with_operand(found.group(1), change)]
    return kind


def number(opcode, pattern, *steps):
    """A literal operand, group 1, or the register that holds it: each step added to it."""
    def kind(statements, i):
        found = re.search(pattern, statements[i].text) if re.match(opcode, statements[i].text) else None
        for step in steps if found else ():
            value = found.group(1)
            if value.startswith("%"):
                yield f"{step:+d}", [statements[i].with_operand(value, f"add.s{{bits}} %mutant, {{operand}}, {step}")]
            elif int(value) + step >= 0:
                first, last = found.span(1)
                text = statements[i].text
                yield f"{step:+d}", [statements[i].changed(f"{text[:first]}{int(value) + step}{text[last:]}")]
    return kind


def cluster_barrier(statements, i):
    if "barrier.cluster.arrive" in statements[i].opcode:
        wait = next((each for each in statements[i + 1:] if "barrier.cluster.wait" in each.opcode), None)
        if wait:
            yield "arrive and wait deleted", [statements[i].changed(""), wait.changed("")]


def wait_deleted(statements, i):
    """Its answer is yes, and nobody has asked."""
    found = re.match(r"mbarrier\.(try|test)_wait\S* (\S+),", statements[i].text)
    if found:
        yield "deleted", [statements[i].changed(f"setp.eq.s32 {found.group(2)}, 0, 0;")]


def wait_asked_once(statements, i):
    if re.match(WAIT, statements[i].text):
        for branch in statements[i + 1:i + REACH]:
            if 0 <= branch.target < branch.start:
                yield "asked once", [branch.changed("")]
                break


def coordinates(statements, i):
    found = re.match(r"cp\.(?:async|reduce\.async)\.bulk\.(?:prefetch\.)?tensor.*?\{([^}]*)\}", statements[i].text)
    for place, name in enumerate(found.group(1).split(", ")) if found else ():
        if name.startswith("%"):
            yield f"coordinate {place} +8", [statements[i].with_operand(name, "add.s{bits} %mutant, {operand}, 8")]


def election(statements, i):
    found = re.match(r"elect\.sync \S+\|(\S+),", statements[i].text)
    if found:
        yield "all elected", [statements[i].changed(f"{statements[i].text} setp.eq.s32 {found.group(1)}, 0, 0;")]


def guard(statements, i):
    """A branch over a few statements of which one synchronises: never taken."""
    if statements[i].guard and statements[i].target > statements[i].start:
        skipped = [each for each in statements[i + 1:i + GUARDS_AT_MOST] if each.start < statements[i].target]
        first = next((each.opcode for each in skipped if SYNCHRONISES.match(each.text)), None)
        if first:
            yield f"of {first}", [statements[i].changed("")]


def swapped(statements, i):
    if i + 1 < len(statements):
        first, second = statements[i:i + 2]
        if all(SYNCHRONISES.match(each.text) for each in (first, second)) and first.text != second.text:
            yield f"with {second.opcode}", [(first.start, first.end, second.guard + second.text),
                                            (second.start, second.end, first.guard + first.text)]


WAIT = r"mbarrier\.(try|test)_wait"
ARRIVE = r"mbarrier\.arrive(?!.*expect_tx)|cp\.async\.mbarrier\.arrive"
EXPECT = r"mbarrier\.(arrive\.)?expect_tx"
BULK = r"cp\.(reduce\.)?async\.bulk\.(?!commit|wait|prefetch)"
TENSOR_LOAD = r"cp\.async\.bulk\.tensor\S*shared::c\w+\.global"
LAST = r"(%?\w+);$"
ADDRESS = r"\[(%r\d+)"
KINDS = {
    "fence deleted": deleted(r"fence\.|membar"),
    "barrier deleted": deleted(r"(bar|barrier)\.(?!warp|cluster)"),
    "__syncwarp deleted": deleted(r"bar\.warp"),
    "cluster barrier deleted": cluster_barrier,
    "half of a cluster barrier deleted": deleted(r"barrier\.cluster"),
    "arrive deleted": deleted(ARRIVE),
    "expect deleted": replaced(EXPECT, ("arrives only", r"^(mbarrier\.arrive)\.expect_tx(.*), \S+;$", r"\1\2;"),
                               ("deleted", r"^mbarrier\.expect_tx.*$", "")),
    "wait deleted": wait_deleted,
    "wait asked once": wait_asked_once,
    "group wait deleted": deleted(r"(cp\.async\.(bulk\.)?wait|wgmma\.wait)"),
    "commit deleted": deleted(r"(cp\.async\.(bulk\.)?commit|wgmma\.commit)"),
    "wgmma.fence deleted": deleted(r"wgmma\.fence"),
    "init deleted": deleted(r"mbarrier\.in(it|val)"),
    "copy deleted": deleted(r"cp\.(reduce\.)?async\.(?!.*(commit|wait|mbarrier\.arrive))|(st|red)\.async"),
    "store deleted": deleted(r"st\.(volatile\.)?(shared|global)"),
    "dependency deleted": deleted(r"griddepcontrol\.wait"),
    "fence weakened": replaced(r"fence\.|membar", ("to a thread's", r"^fence\.proxy\.async.*$", "membar.cta;"),
                               ("other space", r"async\.shared::cta", "async.global"),
                               (".acq_rel.cta", r"^(membar\.(gl|sys)|fence\.(sc|acq_rel)\.(gpu|sys|cluster));", "fence.acq_rel.cta;")),
    "release relaxed": replaced(r"(mbarrier\.arrive|barrier\.cluster\.arrive|st|red|atom)\b", (".relaxed", r"\.release", ".relaxed"),
                                (".relaxed", r"\.acq_rel", ".acquire"),
                                (".relaxed", r"^(mbarrier\.arrive(\.expect_tx)?)(?=\.shared|\.b64)", r"\1.relaxed.cluster"),
                                (".relaxed", r"^barrier\.cluster\.arrive(?!\.rel)", "barrier.cluster.arrive.relaxed")),
    "acquire relaxed": replaced(r"(mbarrier\.(try|test)_wait|ld|atom)\b", (".relaxed", r"\.acquire", ".relaxed"),
                                (".relaxed", r"\.acq_rel", ".release"),
                                (".relaxed", r"^(mbarrier\.\w+_wait(\.parity)?)(?=\.shared|\.b64)", r"\1.relaxed.cluster")),
    "scope narrowed": replaced(r"(mbarrier\.(arrive|try|test)|ld|st|red|atom|fence\.(?!proxy|mbarrier))",
                               (".cta", r"\.(cluster|gpu|sys)(?=\.|;)", ".cta")),
    "group wait .read": replaced(r"cp\.async\.bulk\.wait_group \d", (".read", r"wait_group", "wait_group.read")),
    "group count": number(r"(cp\.async\.(bulk\.)?wait_group|wgmma\.wait_group)", r" (\d+);$", 1),
    "init count": number(r"mbarrier\.init", r", " + LAST, 1, -1),
    "expected bytes": number(EXPECT, r", " + LAST, 16, -16),
    "bytes of a copy": number(BULK + r"(?!tensor)", r"\], (%r\d+|\d+)[,;]", 16, -16),
    "count of a barrier": number(r"(bar|barrier)\.(?!warp|cluster)", r", " + LAST, 32, -32),
    "other named barrier": number(r"(bar|barrier)\.(?!warp|cluster)", r" (%?\w+),", 1),
    "parity flipped": operand(WAIT + r".*\.parity", r"\], (%r\d+|\d+)", ("flipped", "xor.b32 %mutant, {operand}, 1")),
    "parity never flipped": replaced(r"xor\.b32 (%r\d+), %r\d+, 1;", ("constant", r", 1;$", ", 0;")),
    "other barrier waited for": operand(WAIT, ADDRESS, ("+8", "add.s32 %mutant, {operand}, 8")),
    "other barrier arrived at": operand(r"mbarrier\.(arrive|expect)", ADDRESS, ("+8", "add.s32 %mutant, {operand}, 8")),
    "other barrier for a copy": operand(TENSOR_LOAD + r"|cp\.async\.bulk\.shared\S*\.global|(st|red)\.async",
                                        r".*\[(%r\d+)\]", ("+8", "add.s32 %mutant, {operand}, 8")),
    "other rank": operand(r"mapa", LAST, ("^1", "xor.b32 %mutant, {operand}, 1")),
    "mask": operand(r"cp\.async\.bulk.*multicast", r", (%rs\d+)[,;]", ("^1", "xor.b16 %mutant, {operand}, 1"),
                    ("^2", "xor.b16 %mutant, {operand}, 2")),
    "mask of a warp": replaced(r"bar\.warp", ("half", r"-1|0xffffffff", "65535")),
    "coordinate": coordinates,
    "shared address of a copy": operand(BULK, r"\[(%r\d+)\]", ("+128", "add.s32 %mutant, {operand}, 128")),
    "shared address of a thread": operand(r"(ld|st)\.shared", ADDRESS, ("+16", "add.s32 %mutant, {operand}, 16")),
    "matrix descriptor": operand(r"wgmma\.mma", r"\}, (%rd\d+),", ("+32 bytes", "add.s64 %mutant, {operand}, 2"),
                                 ("stride", "xor.b64 %mutant, {operand}, 1<<36".replace("1<<36", str(1 << 36))),
                                 ("swizzle", "xor.b64 %mutant, {operand}, " + str(1 << 62))),
    "election dropped": election,
    "guard dropped": guard,
    "neighbours swapped": swapped,
    "stage compare": number(r"setp\.(eq|ne)\.[su]32 %p\d+, %r\d+, [2-8];", LAST, 1, -1),
}


# ---- Still right, or wrong only on paper ----
def later(mutant):
    return [each.text for each in mutant.statements[mutant.i + 1:]]


def first_of(texts, pattern):
    return next((text for text in texts if re.match(pattern, text)), "")


def before(mutant):
    """The synchronising statement before it."""
    return first_of([each.text for each in reversed(mutant.statements[:mutant.i])], SYNCHRONISES)


def known(outcome, reason, kinds, applies=lambda mutant: True, programs=""):
    """Mutants of these kinds that pass: in all programs to which `applies` does, or in those named."""
    return outcome, reason, lambda m: (m.kind in kinds.split(", ") and applies(m) and
                                       os.path.basename(m.program) in (programs.split() or [os.path.basename(m.program)]))


LAST_WAITS = "wait deleted, wait asked once, parity flipped, other barrier waited for, acquire relaxed"
KNOWN = [
    known("lenient", "an arrival or wait of scope .cta between blocks of a cluster", "scope narrowed",
          lambda m: "mbarrier" in m.opcode),
    known("lenient", "an arrival or wait of scope .cta between blocks of a cluster", "stage compare",
          programs="shared_stream"),  # it compares no stage, but which of three scopes is asked for
    known("lenient", "one warp's wgmma.wait_group counts for its whole warpgroup", "barrier deleted, neighbours swapped",
          lambda m: "bar.sync" in m.opcode + m.what and "wgmma.wait" in before(m) + m.opcode),
    known("lenient", "in global memory, a lane's bulk copy counts as issued by its whole warp", "barrier deleted",
          programs="wrap"),
    known("lenient", "copies that write the bytes that are there already do not race", "guard dropped",
          lambda m: ".global.shared::cta.tile" in m.what),
    known("equivalent", "the thread that copies: what the others read comes with the bytes, and not by its arrival",
          "release relaxed", lambda m: "expect_tx" in m.opcode),
    known("equivalent", "fence.mbarrier_init has released what the cluster barrier hands on", "release relaxed",
          lambda m: "cluster" in m.opcode and before(m).startswith(("fence.mbarrier_init", "mbarrier.arrive.expect", "cp.async.bulk.shared"))),
    known("equivalent", "the last cluster barrier keeps memory alive and hands nothing on", "release relaxed",
          lambda m: not first_of(later(m)[1:], r"(ld|st|cp|mbarrier|red|atom)\b")),
    known("equivalent", "a later commit takes the copy into its group", "commit deleted, neighbours swapped",
          lambda m: ".commit" in first_of(later(m), (r"wgmma" if "wgmma" in m.opcode else r"cp\.async\.(bulk\.)?") + ".?(commit|wait)")),
    known("equivalent", "the next product's commit takes it into its group", "commit deleted", programs="overlapped_epilogue"),
    known("equivalent", "no thread reads what the stores write, so .read is enough", "group wait .read",
          lambda m: not first_of(later(m), r"ld\.(volatile\.|acquire\.\w+\.)?global")),
    known("equivalent", "both come before the copy that needs them", "neighbours swapped",
          lambda m: "fence.mbarrier_init" in m.opcode and "expect_tx" in m.what),
    known("equivalent", "the thread that copies has the proxy fence behind the barrier", "neighbours swapped",
          lambda m: m.opcode.startswith("fence.proxy.async") and "with bar" in m.what),
    known("equivalent", "wgmma.fence orders registers, and the barrier memory", "neighbours swapped",
          lambda m: "bar.sync" in m.opcode + m.what and "wgmma.fence" in m.opcode + m.what),
    known("equivalent", "both come before the first read of what the other kernel writes", "neighbours swapped",
          programs="dependent_launch"),
    known("equivalent", "the products have the same accumulators, and the last wait is for all", "group wait deleted, group count, neighbours swapped",
          programs="serialised_wgmma"),
    known("equivalent", "no copy overwrites the last tiles, and the last wait is for all",
          "group wait deleted, group count, commit deleted, neighbours swapped", programs="wgmma_example"),
    known("equivalent", "each store is waited for in its round, too", "group wait deleted, group count",
          lambda m: ".bulk" in m.opcode, "map_published_too_early"),
    known("lenient", "copies that write the bytes that are there already do not race", "guard dropped",
          lambda m: "tensormap" in m.what, "map_published_too_early"),
    known("equivalent", "the quotients are the same with another number near the largest", "shared address of a thread, stage compare",
          programs="softmax_example"),
    known("equivalent", "these products have no tile that two clusters share, so nobody waits for the flag", "guard dropped",
          lambda m: "bar.warp" in m.what, "pipelined_gemm"),
    known("equivalent", "one copy more, which is waited for and not used", "guard dropped", programs="tile_counter"),
    known("equivalent", "this program launches no kernel that depends on another", "dependency deleted",
          lambda m: not m.program.endswith("dependent_launch")),
    known("equivalent", "a prefetch changes nothing", "guard dropped, copy deleted",
          lambda m: "prefetch" in m.opcode + first_of(later(m), r"prefetch|mbarrier|cp\.|bar")),
    known("equivalent", "it chooses what is prefetched", "stage compare", programs="accumulate"),
    known("equivalent", "a barrier for speed alone: warpgroups take turns, or stay close to the one that prefetches",
          "barrier deleted, neighbours swapped, guard dropped", lambda m: "bar" in m.opcode + m.what,
          "attention attention_overlap accumulate turns_not_passed_on"),
    known("lenient", "the sums are read by volatile loads, which count as atomic", "fence deleted, fence weakened, neighbours swapped",
          programs="read_result_too_early"),
    known("equivalent", "each block has waited for all that the others send to it before the last cluster barrier",
          "cluster barrier deleted, half of a cluster barrier deleted",
          lambda m: not first_of(later(m), r"mbarrier|cp\.|ld\.shared::cl|(st|red)\.async") and "before_exit" not in m.program),
    known("equivalent", "the cluster barrier behind it orders the lanes, too", "__syncwarp deleted",
          lambda m: "barrier.cluster" in first_of(later(m), SYNCHRONISES)),
    known("equivalent", "another __syncwarp comes before the use of what this one orders, or nothing comes after it", "__syncwarp deleted",
          programs="replace_in_loop grouped tensormap_replace map_changed_without_fence read_in_the_other_branch shuffle_for_syncwarp"),
    known("equivalent", "lanes come together to wait, and nothing is handed on", "__syncwarp deleted",
          lambda m: re.match(WAIT, first_of(later(m), SYNCHRONISES)) and before(m).startswith(("cp.async", "mbarrier.arrive"))),
    known("equivalent", "all of it is waited for twice: before __syncthreads, and by each thread",
          "barrier deleted, wait deleted, wait asked once, acquire relaxed, other barrier waited for, parity flipped", programs="phase_missed"),
    known("equivalent", "the same wait comes before it", "group wait deleted, group count, neighbours swapped", programs="source_reused"),
    known("equivalent", "no buffer is filled a second time", "barrier deleted", programs="last_load_not_awaited"),
    known("equivalent", "a thread that has issued nothing does not wait", "guard dropped", lambda m: "wait_group" in m.what),
    known("equivalent", "done by all threads it is the same", "guard dropped", programs="refused_type flag_without_fence grouped"),
    known("equivalent", "the host has written the map before the launch", "fence deleted, neighbours swapped",
          programs="map_changed_without_fence map_in_memory"),
    known("equivalent", "one acquire a map is enough", "fence deleted", lambda m: "tensormap" in m.opcode, "tensormap_replace"),
    known("equivalent", "nobody uses the memory of the barrier after it", "init deleted", lambda m: "inval" in m.opcode),
    known("equivalent", "each thread reads what it has written itself", "barrier deleted", programs="first_copy tiledcopy_baseline"),
    known("equivalent", "another __syncthreads comes before the first use", "barrier deleted",
          programs="barrier_overwritten tile_written_without_proxy_fence softmax_example"),
    known("equivalent", "the stage behind it in the ring is free only after it", "other barrier waited for",
          programs="shared_stream attention attention_overlap no_wait_for_a_free_stage stage_released_before_wgmma"),
    known("equivalent", "the last waits: who has arrived for the stage behind it has arrived for this one", LAST_WAITS,
          programs="carried_tile overlapped_epilogue persistent pipelined_gemm tma_epilogue multicast"),
    known("equivalent", "in the first round the wait is for a phase that is over", LAST_WAITS, programs="values_released_with_the_keys"),
    known("equivalent", "in the first round the wait is for a phase that is over", "guard dropped", programs="shared_stream"),
    known("equivalent", "the lanes arrive at all ranks, in another order", "other rank",
          lambda m: re.search(r"07_|pipelined_gemm|shared_stream", m.program)),
    known("equivalent", "no later round of this program's products waits for it", "arrive deleted, release relaxed, init count",
          lambda m: m.opcode.startswith("mbarrier"), "attention attention_overlap values_released_with_the_keys"),
    known("equivalent", "its scores rise so much that what earlier tiles have added is multiplied by 0", "matrix descriptor, stage compare",
          programs="attention attention_overlap values_released_with_the_keys values_rescaled_in_flight"),
    known("equivalent", "its tiles hold one number in each row", "matrix descriptor, shared address of a thread", programs="serialised_wgmma"),
    known("equivalent", "no other instruction touches these registers after the fence of the product before",
          "wgmma.fence deleted", lambda m: any(each.opcode.startswith("wgmma.fence") for each in m.statements[:m.i])),
    known("equivalent", "the cluster barrier has released the init, and no copy of the engine uses this barrier",
          "fence deleted, neighbours swapped", lambda m: "mbarrier_init" in m.opcode + m.what,
          "st_async arrivals left_without_drop cp_async_arrival_not_counted"),
    known("equivalent", "the fence.proxy.async behind it is for the init, too", "fence deleted, neighbours swapped",
          lambda m: "mbarrier_init" in m.opcode + m.what and first_of(later(m), r"fence\.proxy\.async|cp\.async\.bulk").startswith("fence")),
    known("equivalent", "the fence behind it is for more memory", "fence deleted, fence weakened", programs="proxy_fences"),
    known("equivalent", "the fence before it is for all memory", "guard dropped", programs="proxy_fences"),
    known("equivalent", "threads only read where the next copies go, and one more barrier does no harm", "fence deleted, fence weakened, guard dropped",
          programs="paged_rows"),
    known("lenient", "an atomic in shared memory orders what is around it",
          "barrier deleted, acquire relaxed, release relaxed, wait asked once", programs="arrivals left_without_drop"),
    known("equivalent", "threads alone use this barrier: a copy that did so would be named", "neighbours swapped",
          lambda m: m.opcode.startswith("mbarrier.init")),
    known("equivalent", "two copies, or two barriers, in either order", "neighbours swapped",
          lambda m: m.opcode == m.what[5:] and m.opcode.startswith(("cp.async.bulk.tensor", "mbarrier.arrive.expect", "fence"))),
    known("equivalent", "the phase cannot end before the arrival, so its bytes may come first; the wait is for another group", "neighbours swapped",
          programs="two_ways_to_wait proxy_fences ring"),
    known("equivalent", "the thread that copies has more that orders it: a __syncthreads, or the bytes", "release relaxed", programs="two_ways_to_wait"),
    known("equivalent", "the next cluster barrier comes before the first use of a peer's memory, or there is none after this one",
          "cluster barrier deleted, release relaxed", lambda m: "cluster" in m.opcode, "peer_read_too_early multicast"),
    known("equivalent", "another form of the same copy, or none", "guard dropped", programs="l2_hints one_dimension boxes"),
    known("equivalent", "no thread waits for the barrier that is armed, too", "guard dropped", programs="peer_reduce mask_names_an_exited_block"),
    known("equivalent", "the other lanes wait once more before they leave", "guard dropped", programs="left_without_drop"),
    known("wrong values", "a loop that counts down makes 2^30 rounds", "guard dropped", programs="rounding serialised_wgmma"),
    known("wrong values", "the host takes it for an index", "store deleted", programs="base_offset swizzle_3d"),
    known("lenient", "a loop that asks another barrier in each round counts as one that repeats its wait", "wait asked once", programs="boxes"),
    known("lenient", "copies that write the bytes that are there already do not race", "bytes of a copy", programs="proxy_fences"),
    known("lenient", "volatile accesses count as atomic", "__syncwarp deleted, guard dropped", programs="volatile_instead_of_fence"),
    known("equivalent", "no thread reads what was waited for", "acquire relaxed", programs="tma_load bounded_wait"),
    known("equivalent", "another way to read, which is right, too", "stage compare", programs="bank_conflicts"),
    known("equivalent", "the program does not look at this value", "store deleted, coordinate"),
]


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

    def trap(self):
        """The edit that ends the kernel if a thread executes the statement; a branch: if it is taken."""
        statement = self.statements[self.i]
        return statement.start, statement.start, f"{statement.guard}trap; "


class Program:
    """An executable, or one of several in a joined one."""
    def __init__(self, path):
        self.path = os.path.relpath(path, ROOT)
        with open(path, "rb") as file:
            self.data = file.read()
        self.modules = list(modules_of(self.data))
        self.unchanged = None  # its Run

    def mutants(self, kinds):
        """Every change once for a source line: not in each copy of an unrolled loop or template."""
        name = os.path.basename(self.path)
        own = f"{len(name)}{name}" if os.path.islink(os.path.join(ROOT, self.path)) else ""
        seen, numbers = set(), collections.Counter()
        for module, (_, _, text) in enumerate(self.modules):
            for function, statements in functions_of(text):
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


def run(program, data, edits, module, check="strict"):
    """The program with these edits."""
    environment = dict(os.environ, EMULATOR_CHECK=check, EMULATOR_THREADS="1", EMULATOR_STEPS=STEPS, EMULATOR_PATIENCE="0",
                       LD_LIBRARY_PATH=os.path.join(ROOT, "build/emulator"))
    environment.pop("EMULATOR_SCHEDULE", None)
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, os.path.basename(program.path))
        with STARTING:
            with open(path, "wb") as file:
                file.write(mutant_of(data, program.modules[module], edits) if edits else data)
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
        done = run(program, program.data, mutant.edits, mutant.module)
    except ValueError as error:
        mutant.outcome, mutant.reason = "left out", str(error)
        return mutant
    mutant.report, mutant.seconds = done.report, done.seconds
    rules = [rule for rule in done.rules if rule not in program.unchanged.rules]
    if rules:
        mutant.outcome, mutant.reason = "named", " ".join(rules[:3])
    elif done.code == NO_END or done.code < 0:
        judge_by_known(mutant, True, "no end" if done.code == NO_END else f"crash, signal {-done.code}")
    elif REFUSED.search(done.report):
        mutant.outcome, mutant.reason = "left out", REFUSED.search(done.report).group()
    elif done.code != program.unchanged.code or done.output != program.unchanged.output:
        mutant.outcome = "wrong values"
    elif not is_executed(program, mutant):
        mutant.outcome = "not executed"
    else:
        judge_by_known(mutant, False, "passes")
    return mutant


def judge_by_known(mutant, stops, otherwise):
    """stops: it has no end, or the program crashes; then only a wrong value may be the reason."""
    mutant.outcome, mutant.reason = next(((outcome, reason) for outcome, reason, applies in KNOWN
                                          if (outcome == "wrong values") == stops and applies(mutant)), ("missed", otherwise))


def is_executed(program, mutant):
    """A branch: is it ever taken?"""
    try:
        return "trap" in run(program, program.data, [mutant.trap()], mutant.module).rules
    except ValueError:
        return True


# ---- All of them ----
def chosen(programs, arguments):
    """The mutants to run: of each program and kind one, then of each another."""
    kinds = [kind for kind in KINDS if arguments.kind in kind]
    groups = collections.defaultdict(list)
    for program in programs:
        for mutant in program.mutants(kinds):
            groups["" if arguments.read else program.path, mutant.kind].append((program, mutant))
    for group in groups.values():
        random.Random(arguments.seed).shuffle(group)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*(g[:arguments.each or None] for g in groups.values())))
    return [pair for pair in turns if pair][:(not arguments.read and arguments.count) or None]


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
    """Those that were begun in time, judged; printed as they come."""
    used = {id(program): program for program, _ in pairs}.values()
    done, end = [], time.monotonic() + arguments.seconds
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for program, unchanged in zip(used, pool.map(lambda p: run(p, p.data, [], 0), used)):
            program.unchanged = unchanged
        begun = [pool.submit(lambda pair: judge(*pair) if time.monotonic() < end else None, pair) for pair in pairs]
        for mutant in filter(None, map(lambda each: each.result(), concurrent.futures.as_completed(begun))):
            done.append(mutant)
            print("\t".join(map(str, mutant.row())), flush=True)
            if arguments.reports:
                print(mutant.report, flush=True)
    return sorted(done, key=lambda m: (m.program, list(KINDS).index(m.kind), m.opcode, m.what, m.number))


# ---- For a reader ----
def source_lines(text, statement):
    """Where the statement comes from, with the lines around it."""
    files = dict(re.findall(r'^[ \t]*\.file[ \t]+(\d+) "([^"]*)"', text, re.M))
    for file, line in statement.places:
        path = files.get(file, "")
        if line and os.path.isfile(path):
            yield f"{os.path.relpath(path, ROOT)}:{line}"
            with open(path, encoding="utf-8") as source:
                around = list(enumerate(source, 1))[max(line - 3, 0):line + 2]
            yield from (f"{'>' if number == line else ' '} {number:4} {each.rstrip()}" for number, each in around)


def write_reports(pairs, arguments):
    """Of the pairs, which take each kind in turn, the first that are named, each in a file."""
    count = arguments.count or 240
    done = {id(m) for m in run_all(pairs[:2 * count], arguments)}
    named = [(p, m) for p, m in pairs if id(m) in done and m.outcome == "named"][:count]
    os.makedirs(arguments.read, exist_ok=True)
    for place, (program, mutant) in enumerate(named, 1):
        text = program.modules[mutant.module][2]
        report, check = run(program, program.data, mutant.edits, mutant.module, "on").report, "the default"
        if not report:
            report, check = mutant.report, "strict: the default says nothing"
        changes = [line for first, last, new in mutant.edits
                   for line in ("- " + " ".join(text[first:last].split()), "+ " + (new or "(nothing)"))]
        name = f"{place:03}-{os.path.basename(program.path)}-{mutant.kind.replace(' ', '-')}.txt"
        with open(os.path.join(arguments.read, name), "w", encoding="utf-8") as file:
            file.write("\n".join([f"program  {program.path}", f"kind     {mutant.kind}: {mutant.what}",
                                  f"check    {check}", "", *changes, "",
                                  *source_lines(text, mutant.statements[mutant.i]), "", report]))


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
    for name, default in (("each", 0), ("count", 0), ("seed", 1), ("jobs", 1), ("seconds", 10**9)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("kind", ""), ("part", "1/1"), ("csv", ""), ("read", ""), ("replay", "")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--reports", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    if arguments.replay:
        return replay(arguments)
    programs = [Program(path) for path in arguments.programs or default_programs()]
    pairs = part_of(chosen(programs, arguments), arguments)
    if arguments.read:
        write_reports(pairs, arguments)
        return 0
    done = run_all(pairs, arguments)
    print_table(done)
    if len(done) < len(pairs):
        print(f"{len(pairs) - len(done)} mutants were not run: the time was over")
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([*mutant.row(), f"{mutant.seconds:.2f}"] for mutant in done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
