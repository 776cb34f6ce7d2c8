#!/usr/bin/env python3
"""join.py SOURCE.cu...: writes one program that is all of these programs, to standard output.

nvcc reads the toolkit's headers three times for each program, and for a program of 60 lines that is nearly all of
its time. Each source becomes a namespace, and the one that runs is the one whose name the program is called by: each
name is a link to the same file. #line keeps the files and lines that reports and messages name. A source that uses a
header which only the others include is refused: alone it would not compile."""
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


# ---- A header that a source uses and leaves to the others ----

# What comes from outside, and that nvcc does not include by itself.
OUTSIDE = {"stdio.h": "FILE fprintf fputs printf puts snprintf stderr stdout",
           "cuda.h": "CUtensorMap CUresult", "cuda_bf16.h": "__nv_bfloat16 __float2bfloat16", "cuda_fp16.h": "__half __float2half"}


COMMON = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common")
files_read = {}


def read_code(path):
    """The text of a file without its comments and strings, and the headers that it includes itself."""
    if path not in files_read:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        here = os.path.dirname(os.path.abspath(path))
        included = set(re.findall(r"^#include <(.*)>", text, re.MULTILINE))
        for name in re.findall(r'^#include "(.*)"', text, re.MULTILINE):
            found = [f for f in (os.path.normpath(os.path.join(folder, name)) for folder in (here, COMMON)) if os.path.exists(f)]
            included |= set(found[:1])
        code = re.sub(r"/\*.*?\*/", " ", re.sub(r"//.*", " ", text), flags=re.DOTALL)
        files_read[path] = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', code), included
    return files_read[path]


def all_included(path):
    """Every header that is there when this file is compiled alone."""
    found, left = set(), [path]
    while left:
        for header in read_code(left.pop())[1] - found:
            found.add(header)
            if os.path.isabs(header):
                left.append(header)
    return found


def names_declared(path):
    """The functions, macros and types that a file declares at its left edge."""
    if path in OUTSIDE:
        return set(OUTSIDE[path].split())
    if not os.path.isabs(path):
        return set()
    code = read_code(path)[0]
    return set(re.findall(r"^#define (\w+)", code, re.MULTILINE)) | set(re.findall(r"^(?:struct|union|enum|}) *(\w+)", code, re.MULTILINE)) | \
        set(re.findall(r"^[a-z_][\w \n*]*?[ *](?!__)(\w+)\(", code, re.MULTILINE))


def missing_headers(sources):
    """For each source what it uses of headers that only the others include: alone it would not compile."""
    included = {source: all_included(os.path.abspath(source)) for source in sources}
    home = {}
    for header in sorted(set().union(*included.values())):
        for name in names_declared(header):
            home.setdefault(name, set()).add(header)
    for source in sources:
        path = os.path.abspath(source)
        own = names_declared(path)
        for name in sorted(set(re.findall(r"\b[A-Za-z_]\w+", read_code(path)[0])) & set(home) - own):
            if not home[name] & included[source]:
                yield f"{source} uses {name} and does not include {' or '.join(os.path.basename(h) for h in sorted(home[name]))}"


def main():
    sources = sys.argv[1:]
    missing = list(missing_headers(sources))
    if missing:
        sys.exit("\n".join(missing))
    names = [os.path.splitext(os.path.basename(source))[0] for source in sources]
    for source in sources:
        print("\n".join(joined(source)))
    print(DISPATCH % "\n".join(f'  if (strcmp(name, "{name}") == 0) return run({name}::main, argc, argv);' for name in names))


main()
