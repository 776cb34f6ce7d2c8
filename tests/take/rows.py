#!/usr/bin/env python3
"""rows.py FOLDER: writes rows.h to standard output, which uses each name in the column "ours" of TRANSLATIONS.md. The
headers of make take in FOLDER must define all of them; where a row says which PTX a function is, its text must be there."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OURS = re.compile(r"\b(?:mbarrier|fence|elect|tma|bulk|prefetch|tensormap|cluster|mapa|wgmma|setmaxnreg|stmatrix|named_barrier"
                  r"|swizzle|SWIZZLE)_\w+")


def rows():
    """(PTX or "", the cell "ours") of each row of a table that has such a column."""
    heads = []
    with open(os.path.join(ROOT, "TRANSLATIONS.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else []
            if "ours" in cells:
                heads = cells
            elif not cells:
                heads = []
            elif "ours" in heads and len(cells) == len(heads):
                ptx = re.match("`([^`]*)`", cells[0]) if heads[0] == "PTX" else None
                yield ptx[1] if ptx else "", cells[heads.index("ours")]


def main():
    text = ""
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.*h"))):
        with open(path, encoding="utf-8") as file:
            text += file.read()
    used = {}
    for ptx, cell in rows():
        for name in OURS.findall(cell):
            body = re.search(rf"^static [^;{{}}]*\b{name}\([^{{;]*{{(.*?)\n}}", text, re.DOTALL | re.MULTILINE)
            found = re.sub(r'"\s*"', "", body[1]) if body else ""
            words = ".*".join(re.escape(word) for word in ptx.split("."))
            if ptx and "asm" in found and not re.search(words, found):
                sys.exit(f"TRANSLATIONS.md: {name} is not {ptx}")
            used[name] = None
    print("namespace rows {")
    for name in used:
        if name.startswith("SWIZZLE"):
            print(f"enum {{ {name}_ROW = TMA_{name} }};")
        elif name.startswith("swizzle"):
            print(f"static const auto {name} = tma_{name};")
        else:
            print(f"using {'' if name.startswith('tma_encode') else 'tma'}::{name};")
    print("}")


main()
