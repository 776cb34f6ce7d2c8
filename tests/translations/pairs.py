#!/usr/bin/env python3
"""pairs.py FILE.ptx: compares the instructions of each pair of kernels ours_NAME and theirs_NAME, and prints them.

Only what inline assembly holds counts, without registers. Qualifiers that the PTX ISA takes when none is written are
left out on both sides. Exit code 1 if a pair differs.
"""
import re
import sys

# What the PTX ISA assumes when it is not written, by instruction; and what libraries write in another order.
DEFAULTS = [("mbarrier.arrive", ".release.cta"), ("mbarrier.try_wait", ".acquire.cta"), ("cp.async.bulk.tensor", ".tile"),
            ("cp.reduce.async.bulk.tensor", ".tile"), ("barrier.cluster.arrive", ".release"),
            ("barrier.cluster.wait", ".acquire"), ("mbarrier", ".shared::cta"),
            ("mbarrier", ".shared"), ("barrier.cluster", ".aligned")]
KEPT = re.compile(r"^(mbarrier|fence|cp\.|barrier\.cluster|mapa|elect|prefetch|wgmma|tensormap|mov\.u32 .*%cluster)")


def instructions(body):
    found = []
    for block in re.findall(r"// begin inline asm\n(.*?)// end inline asm", body, re.DOTALL):
        for statement in re.split(r"[;\n]", block):
            statement = re.sub(r"^\s*(@!?%?\w+\s+)?", "", statement).strip()
            if not KEPT.match(statement):
                continue
            words = statement.split()
            opcode = words[0]
            for prefix, default in DEFAULTS:
                if opcode.startswith(prefix):
                    opcode = opcode.replace(default, "")
            if opcode == "mov.u32":
                opcode = next(word for word in words if "%cluster" in word)
            found.append(opcode)
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: pairs.py FILE.ptx")
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    bodies = {part.split("(")[0].strip(): instructions(part) for part in text.split(".entry ")[1:]}
    names = [name[len("ours_"):] for name in bodies if name.startswith("ours_")]
    differ = 0
    for name in names:
        ours, theirs = bodies["ours_" + name], bodies["theirs_" + name]
        same = ours == theirs and ours != []
        differ += not same
        print(f"{'same' if same else 'DIFFERENT'}  {name}: " + (" + ".join(ours) if same else f"{ours} and {theirs}"))
    print(f"{len(names)} pairs, {differ} differ")
    sys.exit(1 if differ or not names else 0)


main()
