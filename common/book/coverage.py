#!/usr/bin/env python3
"""coverage.py: COVERAGE.md, from forms.txt, the emulator's opcodes.def, the PTX in the built programs, and the headers of pitfalls.

  common/book/coverage.py           writes COVERAGE.md
  common/book/coverage.py --look    exit code 1 if it is not up to date

Exit code 1, too, with a sentence for each: an instruction of opcodes.def without a form, a form whose program does not contain
it or is not there, a pitfall, a recording or a heading that is not there. Exit code 2: a program is not built.
"""
import csv, glob, os, re, sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# The instructions of opcodes.def that need a form.
OURS = re.compile(r"(mbarrier|cp|st\.async|red\.async|fence|tensormap|wgmma|setmaxnreg|griddepcontrol|barrier\.cluster|mapa|"
                  r"getctarank|elect|createpolicy|applypriority|discard)\b")
OPCODE = re.compile(rb"(?:cp|mbarrier|st|ld|red|fence|tensormap|wgmma|setmaxnreg|griddepcontrol|barrier|mapa|getctarank|elect|"
                    rb"createpolicy|applypriority|discard|prefetch)(?:\.[a-z0-9_:A-Z]+)+")
wrong = []


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def opcodes_in(program):
    path = os.path.join(ROOT, "build", program)
    if not os.path.exists(path):
        sys.stderr.write(f"coverage: build/{program} is not built: type make build/{program}\n")
        sys.exit(2)
    with open(path, "rb") as file:
        return {match.decode() for match in OPCODE.findall(file.read())}


def matches(form, opcode):
    words = form.split()
    parts, have = words[0].split("."), opcode.split(".")
    if any(word[1:] in have for word in words[1:]):
        return False
    at = 0
    for number, part in enumerate(parts):
        choice = part.strip("{}").split(",") if part.startswith("{") else [part]
        while at < len(have) and not (have[at] in choice or (part == "N" and re.fullmatch(r"\dd", have[at]))):
            if number == 0:
                return False
            at += 1
        if at == len(have):
            return False
        at += 1
    return True


def headings(path):
    found = set()
    for line in read(path).split("\n"):
        if line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(words.replace(" ", "-"))
    return found


def forms():
    part = None
    for line in read("common/book/forms.txt").split("\n"):
        if line.startswith("= "):
            part = line[2:]
        elif line and not line.startswith("#"):
            yield (part, *[field.strip() for field in line.split(" ;")])


def printed_on_a_gpu(folder):
    with open(os.path.join(ROOT, folder, "manifest.csv"), encoding="utf-8", newline="") as file:
        return {row["file"].split(".")[0] for row in csv.DictReader(file) if row["GPU"].startswith("NVIDIA")}


def row_of(form, heading, program, pitfalls, test, lessons, tests, known):
    page, _, anchor = heading.partition("#")
    if not os.path.exists(os.path.join(ROOT, page)) or (anchor and anchor not in headings(page)):
        wrong.append(f"{form}: there is no heading {heading}")
    shown = f"[explained]({heading})"
    answer = []
    if program.startswith("-"):
        shown += ". No program: " + program[1:].strip()
    else:
        if not os.path.exists(os.path.join(ROOT, program + ".cu")):
            wrong.append(f"{form}: there is no program {program}")
        elif not any(matches(form, opcode) for opcode in opcodes_in(program)):
            wrong.append(f"{form}: {program} does not contain it")
        shown = f"[{os.path.basename(program)}]({program}.cu), {shown}"
        if program in lessons:
            answer.append("its output")
    rules = []
    for name in filter(None, re.split(r",\s*", pitfalls)):
        found = glob.glob(f"{ROOT}/0*/pitfalls/{name}.cu")
        rule = re.search(r"^//   report: (.*)$", read(found[0]), re.M) if found else None
        if not rule:
            wrong.append(f"{form}: there is no pitfall {name}")
            continue
        rules.append(f"[{name}]({os.path.relpath(found[0], ROOT)}) `{rule[1]}`")
    if test:
        if test not in tests:
            wrong.append(f"{form}: no GPU has printed emulator/tests/recorded/{test}")
        answer.append(f"`{test}`")
    name = max((each for each in known if form.split()[0].startswith(each)), key=len, default=None)
    runs = "does not know it" if name is None else known[name]
    return [f"`{form.split()[0]}`", shown, "; ".join(rules) or "-", ", ".join(answer) or "-", runs]


def page():
    text = re.sub(r"/\*.*?\*/", "", read("emulator/ptx/opcodes.def"), flags=re.S)
    known = {name: "runs it" for name in re.findall(r'\bOP\("([^"]+)"', text)}
    known.update({name: "refuses it" for name in re.findall(r'\b(?:REFUSED|SPARSE)\("([^"]+)"', text)})
    lessons, tests = printed_on_a_gpu("tests/recorded"), printed_on_a_gpu("emulator/tests/recorded")
    parts, count = {}, [0, 0, 0, 0]
    listed = []
    for part, form, heading, program, pitfalls, test in forms():
        row = row_of(form, heading, program, pitfalls, test, lessons, tests, known)
        parts.setdefault(part, []).append(row)
        listed.append(form.split()[0])
        count = [count[0] + 1, count[1] + (not program.startswith("-")), count[2] + (row[2] != "-"), count[3] + (row[3] != "-")]
    for name in known:
        if OURS.match(name) and not any((form + ".").startswith(name + ".") for form in listed):
            wrong.append(f"{name} is in opcodes.def, but forms.txt has no form of it")
    out = read("common/book/coverage.txt").replace("COUNTS", f"{count[0]} forms: {count[1]} have a program, {count[2]} a pitfall, and "
                                                  f"{count[3]} a recording of what a GPU answered.")
    tables = ""
    for part, rows in parts.items():
        tables += f"### {part}\n\n| form | shown by | broken by, and the rule | what a GPU answered | the emulator |\n|---|---|---|---|---|\n"
        tables += "".join("| " + " | ".join(row) + " |\n" for row in rows) + "\n"
    return out.replace("TABLES\n\n", tables)


def main():
    if sys.argv[1:] not in ([], ["--look"]):
        sys.stderr.write(__doc__)
        sys.exit(2)
    text = page()
    for sentence in wrong:
        print(sentence)
    target = os.path.join(ROOT, "COVERAGE.md")
    if sys.argv[1:] and (not os.path.exists(target) or read("COVERAGE.md") != text):
        wrong.append("")
        print("COVERAGE.md is not up to date: type common/book/coverage.py")
    if not sys.argv[1:]:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    sys.exit(1 if wrong else 0)


main()
