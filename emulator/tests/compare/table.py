#!/usr/bin/env python3
"""table.py [FILE]: writes emulator/COMPARED.md (or FILE) from sanitizer.csv and the headers of the pitfalls, and its counts
into README.md (without FILE)."""
import glob
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "common", "book"))
import tables

TOOLS = ["memcheck", "racecheck", "synccheck", "initcheck"]

HEAD = """# The pitfalls under other tools

Each pitfall of the chapters is a program with one mistake. This page compares what happens when it runs: on the GPU
alone, under the four tools of compute-sanitizer, and on the emulator. Every pitfall has a corrected twin, which must be
silent everywhere. You can use the programs to try other tools: `NN_chapter/pitfalls/NAME.cu`, and `NAME.fix` beside it
makes the twin.

`emulator/tests/compare/record.sh` records the four tools on a machine with a GPU, and `emulator/tests/compare/table.py` writes this page.
The column "H200 alone" is from the header of each program; the emulator's rule is tested by `make check-all` in 21 orders.

- **yes** the tool reports an error other than the fault that the GPU reports anyway.
- **fault** the tool repeats the fault: an illegal instruction, a misaligned address and the like.
- **no end** the program hangs, and the tool said nothing within 15 seconds.
- **twin** the tool says the same of the corrected program: it does not see the mistake.
- A dash: the tool is silent.

"""


def fields(path):
    with open(path, encoding="utf-8") as file:
        header = file.read().split("#include")[0]
    return {key: re.search(rf"^//   {key}: (.*)$", header, re.MULTILINE)[1] for key in ("H200", "report")}


def verdict(answer, outcome):
    """What one tool said, in one word."""
    errors, _, message = answer.partition(": ")
    if errors == "no end":
        return "no end"
    if errors in ("none", "0"):
        return "-"
    message = message.lower()
    repeats = ("illegal instruction" in message or "unspecified launch" in message or "program hit" in message
               or "misaligned" in message and "Misaligned" in outcome
               or "warp illegal" in message or "unknown error" in message or "launch failure" in message)
    return "fault" if repeats else "yes"


def main():
    path = os.path.join(ROOT, "emulator", "tests", "compare", "sanitizer.csv")
    answers = tables.Table(path)
    stamp = answers.notes[0]
    said = {(row["twin"], row["program"]): row for row in answers.records()}
    table, counts, accused, seen = [], dict.fromkeys(TOOLS, 0), [], 0
    sources = sorted(glob.glob(os.path.join(ROOT, "[0-9][0-9]_*", "**", "pitfalls", "*.cu"), recursive=True),
                     key=lambda path: (os.path.relpath(path, ROOT)[:2], os.path.basename(path)))
    left_out = []
    named = 0
    for source in sources:
        name, chapter = os.path.basename(source)[:-3], os.path.relpath(source, ROOT)[:2]
        known = fields(source)
        cells = []
        mistake, twin = said.get(("pitfall", name)), said.get(("corrected", name))
        for tool in TOOLS:
            word = verdict(mistake[tool], known["H200"]) if mistake else "not run"
            if word == "yes" and twin and twin[tool] == mistake[tool]:
                word = "twin"
            counts[tool] += word == "yes"
            cells.append(f"**{word}**" if word == "yes" else word)
            if twin and verdict(twin[tool], "") != "-":
                accused.append(f"{tool} on the corrected {chapter}/{name}: {twin[tool].partition(': ')[2] or twin[tool]}")
        seen += "**yes**" in cells
        if "not run" in cells:
            left_out.append(name)
        named += known["report"] != "none"
        rule = "-" if known["report"] == "none" else f"`{known['report']}`"
        table.append(f"| {chapter}/{name} | {known['H200']} | " + " | ".join(cells) + f" | {rule} |")
    words = ", ".join(f"{tool} {counts[tool]}" for tool in TOOLS)
    count = f"Of {len(sources)} pitfalls, the emulator names {named}, and compute-sanitizer's four tools together {seen}\n"
    text = HEAD + (f"{count}(each reports an error of its own in: {words}).\n\n")
    text += "| pitfall | H200 alone | " + " | ".join(TOOLS) + " | the emulator |\n" + "|---" * 7 + "|\n"
    text += "\n".join(table) + f"\n\n{stamp}\n"
    text += "\n## Corrected programs that a tool accuses\n\n"
    text += "".join(f"- {each}\n" for each in accused) if accused else "None.\n"
    if left_out:
        text += f"\nNot recorded yet: {', '.join(left_out)}.\n"
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "emulator", "COMPARED.md")
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)
    if len(sys.argv) == 1:
        with open(os.path.join(ROOT, "README.md"), "r+", encoding="utf-8") as file:
            readme = re.sub(r"Of \d+ pitfalls, .* together \d+\n", count, file.read())
            file.seek(0)
            file.write(readme)
            file.truncate()


main()
