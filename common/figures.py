#!/usr/bin/env python3
"""figures.py CHAPTER...: writes measured tables and recorded outputs into the READMEs.

In a README, the lines between these two are replaced:

  <!-- begin: NAME [rows=A,B columns=C cell=D] -->
  <!-- end: NAME -->

NAME       a table from build/CHAPTER/NAME.csv, as `make bench` wrote it. Its lines that start with
           '#' say GPU, driver and date and stand below the table. With rows, columns and cell the
           table is turned: one line for each A and B, one column for each value of C, holding D.
NAME.txt   the output of a program, from tests/recorded/CHAPTER/NAME.txt.

In the README of the root NAME is CHAPTER/NAME. A table whose CSV is not there stays as it is, and is
named: measure it with `make bench` first. python3 alone is needed.
"""
import csv
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARKER = re.compile(r"<!-- begin: (\S+)([^\n]*) -->\n(.*?)<!-- end: \1 -->", re.DOTALL)


def markdown(table):
    """A list of rows, the first of them the header, as a table; numbers to the right."""
    def is_number(text):
        return re.fullmatch(r"[-+]?[\d.,]+ ?[%x]?|-|", text) is not None
    right = [all(is_number(row[i]) for row in table[1:]) for i in range(len(table[0]))]
    rule = ["---:" if r else "---" for r in right]
    return "".join("| " + " | ".join(row) + " |\n" for row in [table[0], rule] + table[1:])


def turned(table, rows, columns, cell, name):
    header, lines = table[0], table[1:]
    missing = [f for f in rows + [columns, cell] if f not in header]
    if missing:
        sys.exit(f"figures: {name}: no column {missing[0]!r} in the CSV, which has: "
                 + ", ".join(header))
    index = {field: header.index(field) for field in header}
    across, down, cells = [], [], {}
    for line in lines:
        x, y = line[index[columns]], tuple(line[index[f]] for f in rows)
        if x not in across:
            across.append(x)
        if y not in down:
            down.append(y)
        cells[y, x] = line[index[cell]]
    return [rows + across] + [list(y) + [cells.get((y, x), "") for x in across] for y in down]


def table_text(chapter, name, options):
    path = os.path.join(ROOT, "build", chapter, name + ".csv")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    notes = [line.lstrip("# ") for line in lines if line.startswith("#")]
    table = list(csv.reader(line for line in lines if line and not line.startswith("#")))
    if len({len(row) for row in table}) != 1:
        sys.exit(f"figures: {path}: its lines have different numbers of columns")
    # Names of columns may hold spaces: a value ends where the next "word=" begins.
    fields = dict(re.findall(r"(\w+)=(.+?)(?=\s+\w+=|\s*$)", options))
    if fields:
        unknown = set(fields) ^ {"rows", "columns", "cell"}
        if unknown:
            sys.exit(f"figures: {name}: give rows=, columns= and cell=, all three or none")
        table = turned(table, fields["rows"].split(","), fields["columns"], fields["cell"], name)
    return "\n" + markdown(table) + "".join(f"\n{note}\n" for note in notes) + "\n"


def output_text(chapter, name):
    path = os.path.join(ROOT, "tests", "recorded", chapter, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return "```text\n" + file.read().rstrip("\n") + "\n```\n"


def fill(readme, chapter):
    """chapter: the folder's name, or "" for the root. Returns how many places were filled."""
    with open(readme, encoding="utf-8") as file:
        old = file.read()
    filled = 0

    def replace(match):
        nonlocal filled
        where, options = match.group(1), match.group(2)
        folder, name = (chapter, where) if chapter else where.split("/", 1)
        if name.endswith(".txt"):
            text = output_text(folder, name)
        else:
            text = table_text(folder, name, options)
        if text is None:
            print(f"  {os.path.relpath(readme, ROOT)}: {where}: nothing recorded, left as it is")
            return match.group(0)
        filled += 1
        return f"<!-- begin: {where}{options} -->\n{text}<!-- end: {where} -->"

    new = MARKER.sub(replace, old)
    if new != old:
        with open(readme, "w", encoding="utf-8") as file:
            file.write(new)
    return filled


def main():
    if len(sys.argv) < 2:
        print("usage: figures.py CHAPTER...", file=sys.stderr)
        sys.exit(2)
    places = [(os.path.join(ROOT, "README.md"), "")]
    places += [(os.path.join(c, "README.md"), os.path.basename(os.path.abspath(c)))
               for c in sys.argv[1:]]
    for readme, chapter in places:
        if os.path.exists(readme):
            count = fill(readme, chapter)
            if count:
                print(f"  {os.path.relpath(readme, ROOT)}: {count} places filled")


main()
