#!/usr/bin/env python3
"""join.py SOURCE.cu...: writes one program that is all of these programs, to standard output.

nvcc reads the toolkit's headers three times for each program, and for a program of 60 lines that is nearly all of
its time. Each source becomes a namespace, and the one that runs is the one whose name the program is called by: each
name is a link to the same file. #line keeps the files and lines that reports and messages name."""
import os
import re
import sys

DISPATCH = """#line 1 "the choice among the programs"
#include <stdio.h>
#include <string.h>

static inline int run(int (*program)(void), int, char **) { return program(); }
static inline int run(int (*program)(int, char **), int argc, char **argv) { return program(argc, argv); }

int main(int argc, char **argv) {
  const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
%s
  fprintf(stderr, "there is no program '%%s' in this file\\n", name);
  return 2;
}"""


def included_from(source, line):
    """An #include line as it must be where the source has been copied elsewhere."""
    quoted = re.fullmatch(r'#include "(.*)"', line)
    if not quoted:
        return line
    beside = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(source)), quoted[1]))
    return f'#include "{beside}"' if os.path.exists(beside) else line


def joined(source):
    """The source with its headers first, because they must not be inside the namespace."""
    with open(source, encoding="utf-8") as file:
        lines = [included_from(source, line) for line in file.read().splitlines()]
    begin = next(i for i, line in enumerate(lines) if line and not line.startswith(("#include", "//")))
    headers = [line for line in lines[:begin] if line.startswith("#include")]
    body = [*("" for line in lines[:begin]), *lines[begin:]]
    macros = re.findall(r"^#define (\w+)", "\n".join(body), re.MULTILINE)
    name = os.path.splitext(os.path.basename(source))[0]
    return [*headers, f"namespace {name} {{", f'#line 1 "{source}"', *body, f"}}  // namespace {name}",
            *(f"#undef {macro}" for macro in macros)]


def main():
    sources = sys.argv[1:]
    names = [os.path.splitext(os.path.basename(source))[0] for source in sources]
    for source in sources:
        print("\n".join(joined(source)))
    print(DISPATCH % "\n".join(f'  if (strcmp(name, "{name}") == 0) return run({name}::main, argc, argv);' for name in names))


main()
