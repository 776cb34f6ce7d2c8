#!/usr/bin/env python3
"""book.py FOLDER [SOURCES...]: writes the book: every README and the sources that it links to, and a page
that shows what happens (emulate --page) for every lesson and rung, and for every pitfall with its fix, or for the given ones alone.
All links stay within the folder, so that it can be read offline. Needs python3 alone, and the built
programs."""
import concurrent.futures
import glob
import html
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys

import colours
from markdown import Renderer, plain

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# A rung's whole recording would be a page of 80 MB; what is left out is said on the page.
RECORDING_MB = "16"
UNKNOWN_ADDRESS = "https://github.com/OWNER/REPOSITORY"
# Pages with something to turn, and the chapter that each belongs to.
TURNED = {"common/book/turn_tile.cu": "06_swizzle_3d", "common/book/turn_ring.cu": "07_pipelined_gemm"}

DOCUMENTS = ["README.md", "QUESTIONS.md", "DECIDE.md", "COVERAGE.md", "AFTER_HOPPER.md", "GLOSSARY.md", "TRANSLATIONS.md", "SOURCES.md", "[0-9][0-9]_*/*.md", "[0-9][0-9]_*/*/*.md", "emulator/*.md", "emulator/*/*.md"]

def part(name):
    """A file that lies beside this one and goes into the book."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def found(*patterns):
    """Paths from the root that match, sorted."""
    paths = {os.path.relpath(path, ROOT) for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern))}
    return sorted(paths)


def page_of(path):
    """Where in the book a file of the repository is."""
    folder, name = posixpath.split(path)
    if name == "README.md":
        return posixpath.join(folder, "index.html")
    if name.endswith(".md"):
        return path[:-3] + ".html"
    return path if name.endswith((".svg", ".png")) else path + ".html"


def room_of(source):
    """The folder with the README of the chapter, or of the part of it, that a program belongs to."""
    return posixpath.dirname(source).removesuffix("/pitfalls")


def part_title(path):
    """The first heading of a document."""
    with open(f"{ROOT}/{path}", encoding="utf-8") as file:
        return next((line[2:].strip() for line in file if line.startswith("# ")), path)


def repository_address():
    """Where this repository is, as the workflow or git says; where neither does, as the documents have it."""
    if "GITHUB_REPOSITORY" in os.environ:
        return f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    git = shutil.which("git") and subprocess.run(["git", "-C", ROOT, "config", "remote.origin.url"], capture_output=True,
                                                 text=True, check=False)
    address = re.sub(r"\.git$", "", git.stdout.strip()) if git else ""
    return address if address.startswith("https://") else UNKNOWN_ADDRESS


class Book:
    def __init__(self, target, sources):
        self.target = target
        self.sources = sources
        self.address = repository_address()
        self.documents = sorted(found(*DOCUMENTS), key=lambda path: path == "README.md")  # the index comes last
        self.chapters = [path for path in found("[0-9][0-9]_*") if os.path.isfile(f"{ROOT}/{path}/README.md")]
        self.titles = {path: plain(part_title(path)) for path in self.documents}
        self.sections = []  # what the search looks through: page, anchor, title, words
        self.programs = {}  # path of the source: path of its page in the book
        self.others = set()  # files that something links to
        self.folders = set()  # and folders without a README

    def write(self, path, text):
        path = os.path.join(self.target, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    # ---- Programs ----
    def record(self, source):
        """The page of one program, or why there is none. A pitfall's has its fix, too."""
        chapter, name = room_of(source), source[:-3].split("/")[-1]
        command = ["--at", "landed"] * (source in TURNED) + [f"{ROOT}/build/{source[:-3]}"]
        if "/pitfalls/" in source:
            joined = f"{ROOT}/build/tests/joined/{chapter}"  # tests/join.py
            command = ["--at", "finding", f"{joined}/pitfalls/{name}", "--", f"{joined}/fixed/{name}"]
        if not all(os.access(program, os.X_OK) for program in command if program.startswith("/")):
            return f"{source}: not built"
        page = os.path.join(self.target, source[:-3] + ".html")
        os.makedirs(os.path.dirname(page), exist_ok=True)
        environment = {**os.environ, "EMULATOR_RECORD_LIMIT": RECORDING_MB, "EMULATOR_THREADS": "1"}
        environment.pop("EMULATOR_RECORD", None)
        run = subprocess.run([f"{ROOT}/emulator/emulate", "--page", page, *command], env=environment,
                             capture_output=True, text=True, errors="replace", check=False)
        if not os.path.exists(page):
            return f"{source}: {(run.stderr or run.stdout).strip().splitlines()[-1]}"
        with open(page, encoding="utf-8") as file:
            text = file.read().replace(f'"kernel": "{name}::', '"kernel": "')  # the namespace of the joined programs
        chapter = TURNED.get(source, chapter)
        choices = "".join(line + "\n" for line in run.stdout.splitlines() if line.startswith('{"choice"'))
        text = text.replace("\n</script>", f"\n{choices}</script>", 1)  # of the recording
        up = "../" * source.count("/")
        back = f'<a href="{up}{chapter}/index.html">{html.escape(chapter)}</a>'
        with open(page, "w", encoding="utf-8") as file:
            file.write(text.replace("<header>", f"<header>{back}", 1))
        self.programs[source] = source[:-3] + ".html"
        return None

    def record_all(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            reasons = [reason for reason in pool.map(self.record, self.sources) if reason]
        for reason in reasons:
            print(f"  no page for {reason}")

    # ---- Documents ----
    def link_from(self, document):
        """A function from a link's target in that document to its target in the book."""
        folder = posixpath.dirname(document)

        def link(target):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                return target
            path, _, fragment = target.partition("#")
            path = posixpath.normpath(posixpath.join(folder, path))
            if os.path.isdir(f"{ROOT}/{path}"):
                if not os.path.isfile(f"{ROOT}/{path}/README.md"):
                    self.folders.add(path)
                path = posixpath.join(path, "README.md")
            if path in self.programs:
                page = self.programs[path]
            else:
                page = page_of(path)
                if path not in self.documents and not (path.endswith("/README.md") and posixpath.dirname(path) in self.folders):
                    self.others.add(path)
            start = posixpath.dirname(page_of(document)) or "."
            return posixpath.relpath(page, start) + ("#" + fragment if fragment else "")

        return link

    def frame(self, page, title, body, headings=()):
        """A whole page: where the reader is, what is on the page, and how to go on."""
        up = "../" * page.count("/")

        def entry(path, words):
            here = ' aria-current="page"' if page == page_of(path) else ""
            return f'<a href="{up}{page_of(path)}"{here}>{html.escape(words)}</a>'

        books = [entry("README.md", "Contents")]
        books += [entry(f"{each}/README.md", self.titles[f"{each}/README.md"]) for each in self.chapters]
        books += [entry("emulator/README.md", "The emulator"), entry("QUESTIONS.md", "Questions"), entry("GLOSSARY.md", "Glossary")]
        within = "\n".join(f'<li class="level{level}"><a href="#{name}">{html.escape(words)}</a></li>'
                           for level, name, words in headings if level in (2, 3))
        contents = f'<aside aria-label="on this page"><ul>{within}</ul></aside>' if within else ""
        return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
                f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                f"<title>{html.escape(title)}</title>\n"
                f'<link rel="stylesheet" href="{up}style.css">\n'
                f'<script defer src="{up}sections.js"></script>\n<script defer src="{up}search.js"></script>\n'
                f'</head>\n<body data-up="{up}">\n<header><nav aria-label="chapters">{" ".join(books)}</nav>\n'
                f'<div class="search"><input type="search" placeholder="Search the book" aria-label="Search the book">'
                f'<ol hidden></ol></div></header>\n<div class="columns">{contents}<main>\n{body}\n</main></div>\n'
                f"</body>\n</html>\n")

    def document(self, path):
        folder = posixpath.dirname(path)
        here = posixpath.dirname(page_of(path)) or "."

        def steps(source):
            page = self.programs.get(posixpath.normpath(posixpath.join(folder, source)))
            return page and posixpath.relpath(page, here)

        renderer = Renderer(self.link_from(path), steps)
        with open(f"{ROOT}/{path}", encoding="utf-8") as file:
            body = renderer.render(file.read().replace(UNKNOWN_ADDRESS, self.address))
        self.note_sections(page_of(path), body)
        if path == "README.md":
            body += "\n" + self.contents()
        elif path.endswith("/README.md"):
            body += "\n" + self.watch(folder)
        self.write(page_of(path), self.frame(page_of(path), self.titles[path], body, renderer.headings))

    def note_sections(self, page, body):
        """The words of a page, section by section, for the search."""
        for section in re.split(r"(?=<h[1-3] )", body):
            heading = re.match(r'<h\d id="([^"]*)">(.*?)</h\d>', section, re.DOTALL)
            if heading:
                within_a_word = r"</?(?:span|code|em|strong|a)\b[^>]*>"
                words = [html.unescape(re.sub(r"<[^>]*>", " ", re.sub(within_a_word, "", text)))
                         for text in (heading[2], section[heading.end():])]
                self.sections.append([page, heading[1]] + [" ".join(text.split()) for text in words])

    def watch(self, chapter):
        """Links to the pages of a chapter's programs."""
        parts = []
        for title, pitfalls in (("Watch it happen", False), ("Watch the mistakes", True)):
            pages = [page for source, page in sorted(self.programs.items())
                     if TURNED.get(source, room_of(source)) == chapter and ("/pitfalls/" in source) == pitfalls]
            if pages:
                links = "\n".join(f'<li><a href="{posixpath.relpath(page, chapter)}">{posixpath.basename(page)[:-5]}</a></li>'
                                  for page in pages)
                parts.append(f'<h2>{title}</h2>\n<ul class="watch">{links}</ul>')
        return "\n".join(parts)

    def contents(self):
        items = "\n".join(f'<li><a href="{page_of(path)}">{html.escape(self.titles[path])}</a></li>'
                          for path in self.documents if path != "README.md")
        return f'<h2>Everything in this book</h2>\n<ul class="watch">{items}</ul>'

    def folder(self, path):
        """A list of the sources in a folder that has no README."""
        page = posixpath.join(path, "index.html")
        link = self.link_from(posixpath.join(path, "README.md"))
        names = [name for name in sorted(os.listdir(f"{ROOT}/{path}")) if os.path.isfile(f"{ROOT}/{path}/{name}")]
        items = "\n".join(f'<li><a href="{html.escape(link("./" + name))}">{html.escape(name)}</a></li>' for name in names)
        self.write(page, self.frame(page, path, f'<h1>{html.escape(path)}</h1>\n<ul class="watch">{items}</ul>'))

    def other(self, path):
        """A source or a picture that something links to."""
        if path.endswith((".svg", ".png")):
            os.makedirs(os.path.dirname(os.path.join(self.target, path)), exist_ok=True)
            shutil.copyfile(f"{ROOT}/{path}", os.path.join(self.target, path))
            return
        with open(f"{ROOT}/{path}", encoding="utf-8") as file:
            lines = file.read().rstrip("\n").split("\n")
        text = "\n".join(lines)
        text = colours.c(text) if path.endswith((".c", ".h", ".cu", ".cuh")) else html.escape(text, False)
        body = "\n".join(f'<span id="L{number}">{line}</span>' for number, line in enumerate(text.split("\n"), 1))
        self.write(page_of(path), self.frame(page_of(path), path, f'<h1>{html.escape(path)}</h1>\n<pre class="source" tabindex="0"><code>{body}</code></pre>'))

    def make(self):
        shutil.rmtree(self.target, ignore_errors=True)
        os.makedirs(self.target)
        self.record_all()
        for path in self.documents:
            self.document(path)
        for path in sorted(self.folders):
            self.folder(path)
        missing = sorted(path for path in self.others if not os.path.isfile(f"{ROOT}/{path}"))
        if missing:
            sys.exit("book: a document links to what is not there: " + ", ".join(missing))
        for path in sorted(self.others):
            self.other(path)
        self.write("style.css", part("style.css"))
        self.write("search.js", part("search.js"))
        self.write("sections.js", "const SECTIONS = " + json.dumps(self.sections, ensure_ascii=False) + ";\n")
        print(f"{os.path.relpath(self.target)}/index.html: {len(self.documents)} documents, {len(self.programs)} programs to step "
              f"through, {len(self.others)} sources and figures")


ROOMS = [posixpath.dirname(path) for path in found("[0-9][0-9]_*/*/README.md")]
if len(sys.argv) < 2:
    sys.exit("usage: book.py FOLDER [SOURCES...]")
RECORDED = sys.argv[2:] or [path for path in found("[0-9][0-9]_*/*.cu", "[0-9][0-9]_*/pitfalls/*.cu", "common/book/*.cu",
                                                    *(f"{room}/{each}" for room in ROOMS for each in ("*.cu", "pitfalls/*.cu")))
                            if not posixpath.basename(path).startswith("bench_")]
Book(os.path.abspath(sys.argv[1]), RECORDED).make()
