#!/usr/bin/env python3
"""book.py FOLDER [SOURCES...]: writes the book: every README and the sources that it links to, and a page
that shows what happens (emulate --page) for every lesson, rung and pitfall, or for the given ones alone.
All links stay within the folder, so that it can be read offline. Needs python3 alone, and the built
programs."""
import concurrent.futures
import glob
import html
import os
import posixpath
import re
import shutil
import subprocess
import sys

from markdown import Renderer

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# A rung's whole recording would be a page of 80 MB; what is left out is said on the page.
RECORDING_MB = "16"
DOCUMENTS = ["README.md", "GLOSSARY.md", "TRANSLATIONS.md", "[0-9][0-9]_*/*.md", "[0-9][0-9]_*/*/*.md", "common/emulator/*.md", "common/emulator/*/*.md", "tests/emulator/*.md"]

with open(os.path.join(HERE, "style.css"), encoding="utf-8") as style_file:
    STYLE = style_file.read()


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


class Book:
    def __init__(self, target, sources):
        self.target = target
        self.sources = sources
        self.documents = sorted(found(*DOCUMENTS), key=lambda path: path == "README.md")  # the index comes last
        self.chapters = [path for path in found("[0-9][0-9]_*") if os.path.isfile(f"{ROOT}/{path}/README.md")]
        self.titles = {}
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
        """The page of one program, or why there is none."""
        program = f"{ROOT}/build/{source[:-3]}"
        if not os.access(program, os.X_OK):
            return f"{source}: not built"
        page = os.path.join(self.target, source[:-3] + ".html")
        os.makedirs(os.path.dirname(page), exist_ok=True)
        environment = {**os.environ, "EMULATOR_RECORD_LIMIT": RECORDING_MB, "EMULATOR_THREADS": "1"}
        environment.pop("EMULATOR_RECORD", None)
        run = subprocess.run([f"{ROOT}/common/emulator/emulate", "--page", page, program], env=environment,
                             capture_output=True, text=True, errors="replace", check=False)
        if not os.path.exists(page):
            return f"{source}: {(run.stderr or run.stdout).strip().splitlines()[-1]}"
        with open(page, encoding="utf-8") as file:
            text = file.read()
        chapter = source.split("/")[0]
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

    def frame(self, page, title, body):
        """A whole page: where the reader is, and how to go on."""
        up = "../" * page.count("/")
        chapters = " ".join(
            f'<a href="{up}{each}/index.html"' + (' aria-current="page"' if page.startswith(each + "/") else "") +
            f">{html.escape(each[:2])}</a>" for each in self.chapters)
        return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
                f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                f"<title>{html.escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
                f'<nav aria-label="chapters"><a href="{up}index.html">Contents</a> {chapters} '
                f'<a href="{up}common/emulator/index.html">Emulator</a></nav>\n<main>\n{body}\n</main>\n</body>\n</html>\n')

    def document(self, path):
        renderer = Renderer(self.link_from(path))
        with open(f"{ROOT}/{path}", encoding="utf-8") as file:
            body = renderer.render(file.read())
        self.titles[path] = renderer.title or path
        if path == "README.md":
            body += "\n" + self.contents()
        elif path.endswith("/README.md"):
            body += "\n" + self.watch(posixpath.dirname(path))
        self.write(page_of(path), self.frame(page_of(path), self.titles[path], body))

    def watch(self, chapter):
        """Links to the pages of a chapter's programs."""
        parts = []
        for title, pitfalls in (("Watch it happen", False), ("Watch the mistakes", True)):
            pages = [page for source, page in sorted(self.programs.items())
                     if source.startswith(chapter + "/") and ("/pitfalls/" in source) == pitfalls]
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
        body = "\n".join(f'<span id="L{number}">{html.escape(line, False)}</span>' for number, line in enumerate(lines, 1))
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
        print(f"{os.path.relpath(self.target)}/index.html: {len(self.documents)} documents, {len(self.programs)} programs to step "
              f"through, {len(self.others)} sources and figures")


if len(sys.argv) < 2:
    sys.exit("usage: book.py FOLDER [SOURCES...]")
RECORDED = sys.argv[2:] or found("[0-9][0-9]_*/*.cu", "[0-9][0-9]_*/ladder/*.cu", "[0-9][0-9]_*/pitfalls/*.cu")
Book(os.path.abspath(sys.argv[1]), RECORDED).make()
