#!/usr/bin/env python3
"""check_glossary.py [--link] README...: does each README link each term of GLOSSARY.md once, at its first use?

A use counts in prose: not in code, headings, tables' rules, links, or figures' markers. --link writes the links that
are missing. Prints each missing or second link with its line; the exit code is 1 if there is one.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What may hold a term without being a use of it. A link to the glossary is matched before.
SKIPPED = re.compile(r"!?\[[^\]]*\]\([^)]*\)|`[^`]*`|<!--.*?-->|<[^>]*>")


def terms():
    """Each heading's words with its anchor, the longest words first."""
    found = []
    with open(os.path.join(ROOT, "GLOSSARY.md"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("### "):
                heading = line[4:].strip()
                anchor = re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
                found.append(([word.strip() for word in heading.split(",")], anchor))
    return found


def prose_lines(text):
    """(number, line) of the lines that are prose."""
    fenced = False
    for number, line in enumerate(text.split("\n")):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("#", "|", "<!--", "![", "    ")):
            yield number, line


def pattern(words):
    return re.compile(r"(?<![\w-])(" + "|".join(re.escape(word) for word in words) + r")(s|es)?(?![\w-])",
                      re.IGNORECASE)


def hidden(line):
    """The line with everything blanked that is no prose, character for character."""
    return SKIPPED.sub(lambda match: "\0" * len(match[0]), line)


def check(path, link):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines = text.split("\n")
    again = []
    glossary = os.path.relpath(os.path.join(ROOT, "GLOSSARY.md"), os.path.dirname(path))
    missing = []
    # Longer terms first: "bank conflict" is no use of "bank".
    taken = {}
    for words, anchor in sorted(terms(), key=lambda term: -max(map(len, term[0]))):
        target = f"]({glossary}#{anchor})"
        linked = [number + 1 for number, line in enumerate(lines) for _ in range(line.count(target))]
        again += [(number, anchor) for number in linked[1:]]
        for number, _ in prose_lines(text):
            line = lines[number]
            at = line.find(target)
            free = hidden(line)
            for start, end in taken.get(number, []):
                free = free[:start] + "\0" * (end - start) + free[end:]
            use = pattern(words).search(free)
            if at >= 0 and (use is None or at < use.start()):
                break
            if use is None:
                continue
            if link:
                lines[number] = f"{line[:use.start()]}[{use[0]}{target}{line[use.end():]}"
            else:
                missing.append((number + 1, use[0], anchor))
            break
        for number, _ in prose_lines(text):
            if not link:
                taken.setdefault(number, []).extend(m.span() for m in pattern(words).finditer(hidden(lines[number])))
    if link:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    name = os.path.relpath(path, ROOT)
    for number, word, anchor in sorted(missing):
        print(f"{name}:{number}: '{word}' is used here first: python3 tests/check_glossary.py --link {name} links it to {glossary}#{anchor}")
    for number, anchor in sorted(again):
        print(f"{name}:{number}: {glossary}#{anchor} is linked before: leave this link out")
    return not missing and not again


def main():
    link = sys.argv[1:2] == ["--link"]
    paths = sys.argv[2:] if link else sys.argv[1:]
    if not paths:
        print("usage: check_glossary.py [--link] README...", file=sys.stderr)
        sys.exit(2)
    sys.exit(0 if all([check(os.path.abspath(path), link) for path in paths]) else 1)


main()
