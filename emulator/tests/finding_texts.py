#!/usr/bin/env python3
"""finding_texts.py: which programs show the texts of the checker's findings.

  emulator/tests/finding_texts.py [--all] [--of FUNCTION,...] FILE.c... < REPORTS

REPORTS: what programs of the emulator have printed, each after a line "== COMMAND". Each string of the
sources that is a part of a report's text (four words or more) is looked for in them. Prints the
strings that no program shows; with --all, for every string, the first command that shows it. With --of
only strings in the arguments of these functions count.
Exit code 1: some string is not shown.
"""
import argparse
import re
import sys

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\]|\\.)\'|\w+|[^\s"]', re.S)
CONVERSION = re.compile(r"%(?:[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z)?[a-zA-Z]|%|$)")  # at the end of a string: PRIx64 follows
WORDS = 4


def strings_of(text, functions):
    """The string literals with their lines, in the arguments of these functions; adjacent ones are one."""
    text = re.sub(r"^[ \t]*#[^\n]*|_Static_assert\([^;]*;", lambda m: "\n" * m.group().count("\n"), text, flags=re.M)
    found, current, line = [], None, 0
    before, depth = "", 0  # depth: of parentheses, from such a function's on
    for token in TOKEN.finditer(text):
        word = token.group()
        if depth or (word == "(" and before in functions):
            depth += {"(": 1, ")": -1}.get(word, 0)
        before = word
        if word.startswith(("/*", "//")):
            continue
        if word.startswith('"') and len(word) > 1:
            if functions and not depth:
                continue
            if current is None:
                current, line = "", text.count("\n", 0, token.start()) + 1
            current += word[1:-1]
        elif current is not None:
            found.append((line, current))
            current = None
    return found


def normal(text):
    return " ".join(text.split())


def pieces_of(string):
    """What a report has of it literally."""
    text = string.replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\")
    pieces = [normal(piece.replace("%%", "%")) for piece in CONVERSION.split(text)]
    return [piece for piece in pieces if len(re.findall(r"[A-Za-z]{2,}", piece)) >= WORDS]


def runs_of(reports):
    runs, command, lines = [], None, []
    for line in reports.splitlines() + ["== "]:
        if line.startswith("== "):
            if command:
                runs.append((command, normal(" ".join(lines))))
            command, lines = line[3:], []
        else:
            lines.append(line)
    return runs


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--of", default="")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    every, functions = arguments.all, set(filter(None, arguments.of.split(",")))
    runs, missing = runs_of(sys.stdin.read()), 0
    for path in arguments.files:
        with open(path) as file:
            strings = strings_of(file.read(), functions)
        for line, string in strings:
            for piece in pieces_of(string):
                shown = next((command for command, text in runs if piece in text), None)
                missing += shown is None
                if every or not shown:
                    print(f"{path}:{line}: {piece}\n  {shown or 'is shown by no program'}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
