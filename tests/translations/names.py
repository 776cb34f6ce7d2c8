#!/usr/bin/env python3
"""names.py CUTE_DSL GLUON CUTLASS_INCLUDE: does each name in TRANSLATIONS.md exist in the packages' sources?

CUTE_DSL is the folder cutlass/cute, GLUON is triton/experimental/gluon/language/nvidia, both unpacked from their wheels.
Prints each name that is missing; exit code 1 if there is one.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def definitions(folder):
    """module name -> names that it defines or imports."""
    found = {}
    for path, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(path, name), encoding="utf-8") as file:
                    text = file.read()
                words = set(re.findall(r"^(?:class|def) (\w+)", text, re.MULTILINE))
                for line in re.findall(r"^from [.\w]+ import ([^(\n]+)$", text, re.MULTILINE):
                    words |= {word.strip() for word in line.split(",")}
                module = name[:-3] if name != "__init__.py" else os.path.basename(path)
                found.setdefault(module, set()).update(words)
                found.setdefault(os.path.basename(path), set()).update(words)
    return found


def rows():
    with open(os.path.join(ROOT, "TRANSLATIONS.md"), encoding="utf-8") as file:
        section = ""
        for line in file:
            section = line[3:].strip() if line.startswith("## ") else section
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if line.startswith("| `") and len(cells) == 6:
                yield cells
            elif line.startswith("| the same") and len(cells) == 6:
                yield cells
            elif line.startswith("| `") and section == "Pipelines":
                yield ["", "", cells[0], "", "", ""]
            elif section == "Tiles":
                for name in re.findall(r"`[\w.:]+`", cells[2] if len(cells) == 5 else ""):
                    yield ["", "", name, "", "", ""]


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: names.py CUTE_DSL GLUON CUTLASS_INCLUDE")
    dsl, gluon = definitions(sys.argv[1]), definitions(sys.argv[2])
    headers = ""
    for path, _, files in os.walk(sys.argv[3]):
        if "/cute" in path or path.endswith(("arch", "pipeline")):
            for name in files:
                if name.endswith((".hpp", ".h")):
                    with open(os.path.join(path, name), encoding="utf-8", errors="replace") as file:
                        headers += file.read()
    looked, missing = 0, 0
    for cells in rows():
        for column, cell in ((2, cells[2]), (4, cells[4]), (5, cells[5])):
            match = re.match(r"`([\w.:]+)", cell)
            if not match:
                continue
            looked += 1
            name = match[1].split("::")[-1]
            if column == 2:
                known = re.search(rf"\b{name}\b", headers) is not None
            else:
                module, _, name = match[1].rpartition(".")
                modules = dsl if column == 4 else gluon
                known = name in modules.get(module.split(".")[-1] if module else "hopper", set())
            if not known:
                missing += 1
                print(f"no {match[1]} in the {'CuTe C++' if column == 2 else 'CuTe DSL' if column == 4 else 'Gluon'} package")
    print(f"{looked} names, {missing} missing")
    sys.exit(1 if missing or not looked else 0)


main()
