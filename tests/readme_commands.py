#!/usr/bin/env python3
"""readme_commands.py [--all] [--only TEXT]: runs the commands of every Markdown file and compares their output.

A command is a line of a fenced block, or a span of code in the text, that begins with a program (make,
common/..., build/..., a lesson and its options) or with a setting (EMULATOR_...). Each must end with exit
code 0. The comment <!-- output of: COMMAND --> before a block says which command prints it. The block must be
found in the output of that command, byte for byte; a line "..." stands for lines left out, addresses of
global memory differ from run to run, and so does the line that names the device.

Also checked: each link leads to a file and a heading, and each file that is named exists.

Without --all, commands that start make or take long are only looked up: their goal, program and chapter
must exist. All commands run on the emulator, in a scratch folder beside which build, common, tests and the
chapters appear. What cannot be run is listed in NOT_RUN, with the reason; an entry that matches no command is
an error, so the list cannot grow old.
"""
import argparse
import fnmatch
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHAPTERS = sorted(name for name in os.listdir(ROOT) if re.match(r"\d\d_", name))
LESSONS = {os.path.basename(path)[:-3]: os.path.relpath(os.path.dirname(path), ROOT)
           for chapter in CHAPTERS for folder in ("", "*/") for path in glob.glob(os.path.join(ROOT, chapter, folder + "*.cu"))
           if os.path.basename(os.path.dirname(path)) not in ("pitfalls", "exercises", "take")}

# Pattern of a command, and why it is not run.
NOT_RUN = [
    ("make install *", "puts files where the reader wants them; emulator/tests/own_kernel.bats does"),
    ("make check*", "it would run this test again"),
    ("bats -f *", "names a part of a test's name"),
    ("tests/long/sanitizers *", "builds everything with sanitizers, and runs most tests again"),
    ("DEVICE=emulator make check", "it would run this test again"),
    ("make bench", "needs a GPU"),
    ("make bench-0[1-7]", "needs a GPU"),
    ("make bench-emulator", "takes minutes, and measures"),
    ("make watch-02", "never ends; tests/makefile.bats runs it"),
    ("sudo apt-get *", "needs root and a network"),
    ("tests/translations/check", "needs a network: it downloads CUTLASS, CuTe DSL and Triton"),
    ("emulator/tests/compare/record.sh", "needs a GPU"),
    ("make measure-clock", "needs an H200 and ncu"),
    ("emulator/clock/measure.sh *", "needs an H200 and ncu"),
    ("common/make/record *", "needs a GPU; tests/recorded.bats runs it"),
    ("emulator/tests/long/check_costs", "takes minutes, and measures"),
    ("emulator/tests/long/bench_emulator", "takes minutes, and measures"),
    ("emulator/tests/long/same_reports *", "takes minutes, and compares two builds"),
    ("emulator/tests/long/explore_pitfalls", "takes minutes"),
    ("emulator/tests/long/fuzz *", "takes minutes, and needs clang's libFuzzer"),
    ("EMULATOR_CLOCK=h200 EMULATOR_MATH=skip * --m 8192 *", "takes a minute and 2 GB"),
    ("EMULATOR_CHECK=strict ctest *", "needs a build by CMake; emulator/tests/own_kernel.bats types the recipe"),
    ("make figures*", "figures.bats and readmes.bats compare what it writes"),
]
# Commands that take more than two seconds: run with --all alone. So is everything that starts make or nvcc.
SLOW = [
    "build/07_pipelined_gemm/library/layouts *",
]
# Words of a command in which the reader puts a name of their own, and the name that the test puts there.
WORDS_TO_FILL_IN = [
    (r"emulate kernel\.cu 1024$", "emulate -I emulator/tests/own_kernel/include --with emulator/tests/own_kernel/host.cpp emulator/tests/own_kernel/add.cu 1024"),
    (r"--page out\.html$", "--page out.html build/02_tma_load/first_load"),
    (r"(?<![A-Z_=])PROGRAM(?: \[ARGS\.\.\.\]| \.\.\.)?(?![=A-Z])", "build/02_tma_load/first_load"),
    (r"(?<![A-Z_=])FILE\b", "out.file"),
    (r"\./program\b", "build/02_tma_load/first_load"),
]
LIMIT = 1200  # seconds for one command; a make may have much to compile
# What a command reads, by its first words.
INPUT = {"where --ask": "128B 3 17\n"}
# Exit codes other than 0, and why.
EXIT_CODES = [
    ("EMULATOR_CHECK=off *--page *stage_reused", 1),  # the order in which the program prints FAIL
    ("EMULATOR_CHECK=off * build/02_tma_load/pitfalls/stage_reused", 3),  # a failing order was found
    ("*build/0[1-7]*/pitfalls/*", None),  # whatever the mistake leads to
    ("bounded_wait --trap", 1),  # the kernel ends itself
]
# What only a GPU can print was recorded: the block must be in this file.
RECORDED = {"cuda-gdb *": "emulator/tests/compare/debuggers.txt"}
MAKE_VARIABLES = ("PROGRAM", "TO", "EXERCISE", "DEVICE", "SANITIZE", "TESTS", "V", "WERROR", "CUDA_HOME", "PREFIX", "CC")


def markdown_files():
    """Those of the tree, without what is built or hidden; a bare machine has no git to ask."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        hidden = {name for name in folders if name.startswith(".")}
        built = {"build"} if folder == ROOT else set()
        folders[:] = [name for name in folders if name not in hidden | built]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files if name.endswith(".md")]
    return sorted(found)


class Block:
    """A fenced block: its language, its lines, and the command whose output it is."""

    def __init__(self, line, language, output_of, generated):
        self.line, self.language, self.output_of, self.generated, self.text = line, language, output_of, generated, []


def split(path):
    """The fenced blocks of a file, and its other text, line by line."""
    blocks, prose, block, output_of, generated = [], [], None, None, False
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            fence = re.match(r"( *)```(\w*)$", line)
            if fence and block is None:
                block = Block(number, fence.group(2), output_of, generated)
                indent, output_of = len(fence.group(1)), None
            elif fence:
                blocks.append(block)
                block = None
            elif block is not None:
                block.text.append(line[indent:] if not line[:indent].strip() else line)
            else:
                comment = re.match(r"<!-- output of: (.*) -->$", line)
                if comment:
                    output_of = comment.group(1)
                elif re.match(r"<!-- (begin|end): ", line):
                    generated = line.startswith("<!-- begin")
                prose.append((number, line))
    return blocks, prose


def is_command(text):
    first = text.split(" ")[0]
    if re.match(r"[A-Z_]+=\S+( |$)", text):
        return text.startswith(("EMULATOR_", "DEVICE=", "ASAN_OPTIONS="))
    if first in ("make", "nvcc", "sudo", "python3", "bats"):
        return " " in text
    if first in LESSONS:
        return " -" in text
    if first.endswith(".sh") and "/" not in first:
        return True
    if first.startswith(("tests/", "emulator/tests/")) and " " not in text:
        full = os.path.join(ROOT, first)
        return os.path.isfile(full) and os.access(full, os.X_OK) and not first.endswith(".py")
    return re.match(r"(\./)?(build|common|emulator|tests)/[\w/.-]+ ", text) is not None


def commands_of_block(block):
    """The command lines of a block without a language, each without the comment behind it."""
    joined, commands, number = "", [], block.line
    for offset, line in enumerate(block.text, 1):
        if line.startswith("$ "):
            line = line[2:]
        if not joined:
            number = block.line + offset
        joined += line.strip() if joined else line
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip() + " "
            continue
        command = re.split(r"  +|\s#\s", joined)[0].strip()
        joined = ""
        if is_command(command):
            commands.append((number, command))
    return commands


def commands_of_prose(prose):
    text, starts = "", []
    for number, line in prose:
        starts.append((len(text), number))
        text += line + "\n"
    for span in re.finditer(r"`([^`]+)`", text):
        command = " ".join(span.group(1).split())
        if is_command(command):
            yield max(number for start, number in starts if start <= span.start()), command


def collect():
    """Every command: (file, line, command, blocks of output)."""
    found = []
    for path in markdown_files():
        blocks, prose = split(path)
        for block in blocks:
            if not block.language:
                found += [(path, line, command, None) for line, command in commands_of_block(block)]
                prompt = block.text[0].startswith("$ ") if block.text else False
                if prompt:
                    block.output_of, block.text = block.text[0][2:], block.text[1:]
            if block.output_of:
                found.append((path, block.line, block.output_of, block.text))
        found += [(path, line, command, None) for line, command in commands_of_prose(prose)]
    return found


def matches(command, patterns):
    return next((entry for entry in patterns if fnmatch.fnmatchcase(command, entry if isinstance(entry, str) else entry[0])), None)


# ---- Links, and files that are named ----

def slug(heading):
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")


def anchors(path):
    seen, names = {}, set()
    for _, line in split(path)[1]:
        heading = re.match(r"#+ +(.*)$", line)
        if heading:
            name = slug(heading.group(1))
            count = seen.get(name, 0)
            seen[name] = count + 1
            names.add(name if count == 0 else f"{name}-{count}")
    return names


def check_links(problems):
    count = 0
    for path in markdown_files():
        for line, text in split(path)[1]:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
                if re.match(r"[a-z]+:", target):
                    continue
                count += 1
                file, _, anchor = target.partition("#")
                full = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                if os.path.isdir(os.path.join(ROOT, full)) and anchor:
                    full = os.path.join(full, "README.md")
                if not os.path.exists(os.path.join(ROOT, full)):
                    problems.append(f"{path}:{line}: the link to {target} leads to no file")
                elif anchor and full.endswith(".md") and anchor not in anchors(full):
                    problems.append(f"{path}:{line}: the link to {target}: {full} has no such heading")
    return count


def check_named_files(problems):
    count = 0
    for path in markdown_files():
        for line, text in split(path)[1]:
            for name in re.findall(r"`((?:common|emulator|tests|\d\d_\w+)/[\w./*-]+)`", text):
                count += 1
                if not glob.glob(os.path.join(ROOT, name)):
                    problems.append(f"{path}:{line}: there is no file {name}")
    return count


# ---- Commands that are only looked up ----

def make_goals():
    text = open(os.path.join(ROOT, "common", "make", "goals.mk"), encoding="utf-8").read()
    goals = set(re.findall(r"^([a-z-]+):.* ## ", text, re.MULTILINE))
    with open(os.path.join(ROOT, "common", "make", "start.mk"), encoding="utf-8") as file:
        by_chapter = re.search(r"^BY_CHAPTER := (.*)$", file.read(), re.MULTILINE)[1].split()
    return goals, set(by_chapter)


def look_up_make(command):
    """Why this make command cannot work, or None."""
    goals, by_chapter = make_goals()
    chapter = None
    for word in shlex.split(command.split("|")[0])[1:]:
        name, equals, value = word.partition("=")
        if equals:
            if name not in MAKE_VARIABLES:
                return f"make has no variable {name}"
            if name == "PROGRAM" and LESSONS.get(value) is None:
                return f"there is no program {value}"
            if name == "PROGRAM" and chapter and LESSONS[value].split("/")[0] != chapter:
                return f"{chapter} has no program {value}"
            continue
        with_number = re.match(r"([a-z-]+)-(\d\d)$", word)
        if with_number and with_number.group(1) in by_chapter:
            chapter = next((c for c in CHAPTERS if c.startswith(with_number.group(2))), None)
            if chapter is None:
                return f"there is no chapter {with_number.group(2)}"
        elif word not in goals and not word.startswith("build/"):
            return f"make has no goal {word}"
    return None


# ---- Running ----

class Scratch:
    """A folder that looks like the root, so that what a command writes does not land there."""

    def __init__(self, shows_progress):
        self.shows_progress = shows_progress
        self.folder = tempfile.mkdtemp(prefix="readme_commands.")
        for name in ["build", "common", "emulator", "tests", "Makefile"] + CHAPTERS:
            os.symlink(os.path.join(ROOT, name), os.path.join(self.folder, name))
        shutil.copy(os.path.join(ROOT, "02_tma_load", "first_load.cu"), os.path.join(self.folder, "mine.cu"))
        self.results = {}

    def expand(self, path, command):
        for pattern, replacement in WORDS_TO_FILL_IN:
            command = re.sub(pattern, replacement, command)
        command = command.replace("TO=folder", f"TO={self.folder}/taken")
        first = command.split(" ")[0]
        if first in LESSONS:
            command = f"common/make/run-program build/{LESSONS[first]}/{command}"
        elif first.endswith(".sh") and "/" not in first:
            command = f"{os.path.dirname(path)}/{command}"
        elif re.match(r"(\./)?build/\d\d_", command):
            command = f"common/make/run-program {command}"
        elif re.match(r"(EMULATOR_[A-Z]+=\S+ ?)+$", command):
            command = f"EMULATOR_CLOCK=h200 {command}" if "MATH=skip" in command else command
            command += " emulator/emulate build/02_tma_load/first_load"
        elif first == "nvcc":
            command += f" -Icommon -I{ROOT}/02_tma_load build/common/libcommon.a"
            command = "PATH=$PATH:/usr/local/cuda/bin " + command
        return command

    def run(self, path, command):
        expanded = self.expand(path, command)
        folder = ROOT if re.match(r"([A-Z]+=\S+ )*make ", expanded) else self.folder
        key = (folder, expanded)
        if key not in self.results:
            environment = {name: value for name, value in os.environ.items()
                           if name not in ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "TO")}
            environment.update(DEVICE="emulator", EXERCISES=os.path.join(self.folder, "exercises"), EMULATOR_THREADS="1")
            given = next((text for start, text in INPUT.items() if command.startswith(start)), "")
            limited = ["timeout", "-k", "5", str(LIMIT), "bash", "-o", "pipefail", "-c", expanded]
            begun = time.monotonic()
            done = subprocess.run(limited, cwd=folder, env=environment, input=given, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if self.shows_progress:
                print(f"{time.monotonic() - begun:6.1f} s  {command}", flush=True)
            self.results[key] = (done.returncode, done.stdout)
        return self.results[key]

    def remove(self):
        shutil.rmtree(self.folder)


def normalised(line):
    """Without what differs from run to run, or between compilers: which line of a statement in a header has its instruction."""
    line = re.sub(r"(\(in [\w.]+):\d+\)", r"\1:LINE)", line)
    return re.sub(r"\b0x[1-9a-f][0-9a-f]{8,11}\b", "0xADDRESS", line.rstrip())


def first_difference(expected, output):
    """None if all runs of lines between "..." are in the output in this order; else the first line that does not."""
    lines = [normalised(line) for line in output.split("\n") if not line.startswith("device: ")]
    position, run = 0, []
    for line in [normalised(line) for line in expected] + ["..."]:
        if line.strip() != "...":
            run.append(line)
            continue
        for start in range(position, len(lines) - len(run) + 1):
            if lines[start:start + len(run)] == run:
                position = start + len(run)
                break
        else:
            return next((wanted for wanted in run if wanted not in lines), run[0] if run else "")
        run = []
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", help="only commands that contain this text")
    parser.add_argument("--list", action="store_true", help="print the commands, and run none")
    arguments = parser.parse_args()
    problems, used, ran, looked_up, outputs = [], set(), set(), set(), 0
    links, files = check_links(problems), check_named_files(problems)
    for path in markdown_files():
        for block in split(path)[0]:
            if block.language == "text" and not (block.generated or block.output_of):
                problems.append(f"{path}:{block.line}: no <!-- output of: COMMAND --> says what prints this block")
    scratch = Scratch(arguments.all)
    try:
        for path, line, command, expected in collect():
            if arguments.list:
                print(f"{path}:{line}: {command}{'' if expected is None else '  (and its output)'}")
                continue
            if arguments.only not in command:
                continue
            recording = RECORDED.get(matches(command, list(RECORDED)))
            if recording:
                with open(os.path.join(ROOT, recording), encoding="utf-8") as file:
                    difference = first_difference(expected or [], file.read())
                if difference is not None:
                    problems.append(f"{path}:{line}: {recording} does not hold this line of the block: {difference}")
                continue
            entry = matches(command, NOT_RUN)
            words = re.sub(r"^([A-Z_]+=\S+ )+(?=make)", "", command)
            if words.startswith("make "):
                why = look_up_make(words)
                if why:
                    problems.append(f"{path}:{line}: {command}: {why}")
            if entry:
                used.add(entry[0])
                continue
            slow = matches(command, SLOW)
            used.add(slow)
            if not arguments.all and (slow or words.startswith(("make ", "nvcc "))):
                looked_up.add(command)
                continue
            if not arguments.all and command.endswith("./mine"):
                looked_up.add(command)
                continue
            code, output = scratch.run(path, command)
            ran.add(command)
            wanted = matches(command, EXIT_CODES)
            if expected is not None:
                outputs += 1
                difference = first_difference(expected, output)
                if difference is not None:
                    problems.append(f"{path}:{line}: {command} does not print this line of the block: {difference}")
            if code != (wanted[1] if wanted else 0) and not (wanted and wanted[1] is None):
                problems.append(f"{path}:{line}: {command}: exit code {code}\n" + "\n".join(output.split("\n")[-6:]))
        if not arguments.only and not arguments.list:
            for pattern, reason in NOT_RUN:
                if pattern not in used:
                    problems.append(f"NOT_RUN has '{pattern}' ({reason}), but no Markdown file has such a command")
            for pattern in SLOW:
                if pattern not in used:
                    problems.append(f"SLOW has '{pattern}', but no Markdown file has such a command")
    finally:
        scratch.remove()
    print(f"{len(ran)} commands run, {outputs} outputs compared, {len(looked_up)} looked up, {links} links, {files} files")
    if problems:
        sys.exit(f"{len(problems)} problems:\n" + "\n".join(problems))


if __name__ == "__main__":
    main()
