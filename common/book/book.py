#!/usr/bin/env python3
"""book.py FOLDER [SOURCES...]: writes the book: every README and the sources that it links to, a page for each question and
each word of the glossary, and one that shows what happens (emulate --page) for every lesson, for every rung beside the one
before, and for every pitfall with its fix, or for the given ones alone. All links stay within the folder, so that it can be
read offline. Needs python3 alone, and the built programs."""
import base64
import concurrent.futures
import glob
import gzip
import html
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys

import colours
from markdown import Renderer, anchor, plain

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# A rung's whole recording would be 80 MB; what is left out is said on the page. Data that cannot be packed stays as large.
RECORDING_MB = "4"
PAGE_BYTES = 4_000_000
UNKNOWN_ADDRESS = "https://github.com/OWNER/REPOSITORY"
# Pages with something to turn, and the chapter that each belongs to.
TURNED = {"common/book/turn_tile.cu": "06_swizzle_3d", "common/book/turn_ring.cu": "07_pipelined_gemm"}
TURNED_WORDS = {"common/book/turn_tile.cu": "where a swizzled tile's rows lie", "common/book/turn_ring.cu": "how many stages a ring needs"}

# Each rung of the GEMM is compared with the one before, for a product whose recordings are whole, and pack to half as much.
with open(f"{ROOT}/07_pipelined_gemm/README.md", encoding="utf-8") as readme:
    RUNGS = [f"07_pipelined_gemm/{name}" for name in re.findall(r"(?m)^\| \[\w+\]\((\w+\.cu)\) \|", readme.read())]
PRODUCT = ["--m", "256", "--blocks", "2"]
RUNG_MB = "5"

# Where a reader with one hour begins.
START = [
    ("02_tma_load/first_load.cu", 15, "One thread fetches a tile, and a barrier reports when it is there."),
    ("03_tma_store/first_store.cu", 10, "The tile goes back, behind the fence that is most often missing."),
    ("07_pipelined_gemm/producer_consumer.cu", 20, "One warp only loads, the others only multiply: the loop of every fast GEMM."),
    ("02_tma_load/pitfalls/read_without_wait.cu", 15, "A mistake, its report and its fix, side by side."),
]
# The parts: title, sentence, and which documents are in it.
PARTS = [
    ("The lessons", "Seven chapters, from the first copy to a GEMM beside cuBLAS, to be read in order.", r"\d\d_"),
    ("The emulator", "Your own kernel without a GPU: what it reports, how to find a mistake, and what it cannot do.", r"emulator/"),
    ("Looked up", "Answers, decisions, words, and the names that other libraries have for the same things.", r""),
]

# What the first paragraph of a document does not say in one sentence.
SENTENCES = {
    "02_tma_load/MORE.md": "Bulk copies, gather, im2col, maps changed by a kernel, and what they cost.",
    "07_pipelined_gemm/MORE.md": "Small shapes, groups of products, dependent launch, and a counter of tiles.",
    "07_pipelined_gemm/WGMMA.md": "Descriptors, layouts and registers, and when ptxas serialises.",
    "07_pipelined_gemm/library/README.md": "A bf16 and e4m3 GEMM for any shape, to use in a program of your own.",
    "07_pipelined_gemm/library/NOTES.md": "How the library was measured, and what it chooses from.",
    "emulator/CHECKS.md": "Every rule, how sure it is, and a program that breaks it.",
    "emulator/DEBUGGING.md": "From what you see (a hang, an error, wrong results) to the mistake.",
    "emulator/INSIDE.md": "How the emulator is built, and how to add an instruction or a rule.",
    "emulator/FINDINGS.md": "The reports as SARIF or JSON, for GitHub, editors and your own tools.",
    "emulator/LIMITS.md": "Performance, textures, several devices: what it leaves out, and how it is tested.",
    "emulator/SETTINGS.md": "Environment variables, and which error the host gets after a fault or a hang.",
    "emulator/YOUR_KERNEL.md": "Recipes: several files, a Makefile, CMake, continuous integration.",
    "emulator/clock/CLOCK.md": "How long a kernel would take on an H200, from a model, and where the model is wrong.",
    "emulator/record/RECORDING.md": "The format of a recording, for your own tools.",
    "AFTER_HOPPER.md": "What changes on Blackwell, from documents alone.",
    "COVERAGE.md": "Each form that the PTX ISA has for sm_90a, with a program, or why there is none.",
    "TRANSLATIONS.md": "The same things in CuTe, CUTLASS, Triton, Mojo and CCCL.",
}

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
    if path == "README.md":
        return "about.html"
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


def first_sentence(path):
    """The question in bold that a chapter begins with, else the first sentence of the first paragraph, without marks."""
    if path in SENTENCES:
        return SENTENCES[path]
    with open(f"{ROOT}/{path}", encoding="utf-8") as file:
        text = re.sub(r"(?s)<!--.*?-->|```.*?```", "", file.read())
    paragraph = next((each for each in text.split("\n\n") if re.match(r"[\w*\[]", each.strip())), "")
    question = re.match(r"(?s)\*\*(.*?)\*\*", paragraph.strip())
    words = " ".join(plain(question[1] if question else paragraph).split())
    if question:
        return words
    return re.split(r"(?<=[.?:])(?<!\d\.) (?=[A-Z`])", words)[0]


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
        documents = found(*DOCUMENTS)
        self.parts = []  # title, sentence, documents in the order in which they are read
        for title, sentence, pattern in PARTS:
            mine = [path for path in documents if re.match(pattern, path) and path != "README.md"]
            documents = [path for path in documents if path not in mine]
            mine.sort(key=lambda path: (posixpath.dirname(path), not path.endswith("README.md"), path))
            self.parts.append((title, sentence, mine))
        self.documents = ["README.md"] + [path for _, _, mine in self.parts for path in mine]
        self.entries = {"QUESTIONS.md": self.questions(), "GLOSSARY.md": self.terms()}
        self.chapters = [path for path in found("[0-9][0-9]_*") if os.path.isfile(f"{ROOT}/{path}/README.md")]
        self.titles = {path: plain(part_title(path)) for path in self.documents}
        self.sections = []  # what the search looks through: page, anchor, title, words
        self.programs = {}  # path of the source: path of its page in the book
        self.others = set()  # files that something links to
        self.folders = set()  # and folders without a README
        self.shared = {}  # what the pages of all programs use

    # ---- Questions and words: a page for each ----
    @staticmethod
    def questions():
        """[(page, title, Markdown)]: the rows of QUESTIONS.md."""
        entries, taken, head = [], set(), None
        with open(f"{ROOT}/QUESTIONS.md", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("| ")]
        for line in lines:
            cells = Renderer.cells(line)
            if cells[-2:] == ["read", "run"]:
                head = cells
                continue
            if head is None:
                continue
            words = re.split(r"[;(]", plain(cells[0]))[0]
            name = anchor(" ".join(words.split()[:9]), taken)
            answer = cells[1][:1].upper() + cells[1][1:]
            parts = [answer if answer.endswith((".", "?")) else answer + "."] + [f"{title.capitalize()}: {cell}" for title, cell in zip(head[2:], cells[2:]) if cell]
            entries.append((f"questions/{name}.html", cells[0], "\n\n".join(parts)))
        return entries

    @staticmethod
    def terms():
        """The same for the words of GLOSSARY.md."""
        with open(f"{ROOT}/GLOSSARY.md", encoding="utf-8") as file:
            sections = re.split(r"(?m)^### ", re.sub(r"(?m)^## .*\n", "", file.read()))[1:]
        taken = set()
        return [(f"glossary/{anchor(title, taken)}.html", title, body.strip())
                for title, _, body in (section.partition("\n") for section in sections)]

    def entry_pages(self, document):
        """Writes them, each with the way to its neighbours."""
        entries = self.entries[document]
        for number, (page, title, text) in enumerate(entries):
            renderer = Renderer(self.link_from(document, page))
            body = renderer.render(f"# {title}\n\n{text}\n")
            self.note_sections(page, body)
            read = re.search(r"\]\(([^)#]+\.md)#([^)]+)\)", text)
            if document == "QUESTIONS.md" and read:
                body += self.section(page, *read.groups())
            turn = [entries[at][:2] if 0 <= at < len(entries) else None for at in (number - 1, number + 1)]
            self.write(page, self.frame(page, plain(title), body, turn=turn))

    def section(self, page, document, name):
        """The section of a document that answers a question, for the question's page: at most so many blocks that it stays short."""
        most, taken = 3000, set()
        with open(f"{ROOT}/{document}", encoding="utf-8") as file:
            parts = re.split(r"(?m)^(#{2,6} .*)$", file.read())
        for heading, text in zip(parts[1::2], parts[2::2]):
            title = heading.lstrip("# ")
            if anchor(title, taken) == name:
                shown = ""
                for block in text.strip().split("\n\n"):
                    if len(shown) + len(block) > most and shown.count("```") % 2 == 0 and "<details>" not in shown:
                        break
                    shown += block + "\n\n"
                shown = shown.replace("](#", f"]({posixpath.basename(document)}#")
                return Renderer(self.link_from(document, page)).render(f"## {self.titles[document]}: {title}\n\n{shown}")
        return ""

    def write(self, path, text):
        path = os.path.join(self.target, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    # ---- Programs ----
    def record(self, source):
        """The page of one program, or why there is none. A pitfall's has its fix, too, and a rung's the rung before."""
        chapter, name = room_of(source), source[:-3].split("/")[-1]
        command = ["--at", "landed"] * (source in TURNED) + [f"{ROOT}/build/{source[:-3]}"]
        if source in RUNGS:
            before = RUNGS[max(0, RUNGS.index(source) - 1):RUNGS.index(source)]
            command = [word for rung in [*before, source] for word in ("--", f"{ROOT}/build/{rung[:-3]}", *PRODUCT)][1:]
        if "/pitfalls/" in source:
            joined = f"{ROOT}/build/tests/joined/{chapter}"  # tests/join.py
            command = [f"{joined}/pitfalls/{name}", "--", f"{joined}/fixed/{name}"]
        if not all(os.access(program, os.X_OK) for program in command if program.startswith("/")):
            return f"{source}: not built"
        page = os.path.join(self.target, source[:-3] + ".html")
        os.makedirs(os.path.dirname(page), exist_ok=True)
        environment = {**os.environ, "EMULATOR_RECORD_LIMIT": RUNG_MB if source in RUNGS else RECORDING_MB, "EMULATOR_THREADS": "1"}
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
        back = f'<a href="{up}index.html">Contents</a> <a href="{up}{chapter}/index.html">{html.escape(chapter)}</a>'
        text = self.packed(text.replace("<header>", f"<header>{back}", 1), up)
        if len(text) > PAGE_BYTES:
            sys.exit(f"book: {source[:-3]}.html would have {len(text):,} bytes, but a page may have {PAGE_BYTES:,}")
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
        self.programs[source] = source[:-3] + ".html"
        return None

    def packed(self, text, up):
        """A page whose recordings are compressed, without the final memory, which it does not show, and whose style and
        script are files that all pages share."""
        def pack(recording):
            lines = re.sub(r'(?m)^(\{"end".*"shared": )\[.*\]\}$', r"\1[]}", recording[2])
            data = base64.b64encode(gzip.compress(lines.encode(), 9, mtime=0)).decode()
            return f'{recording[1]} data-packed="gzip">\n{data}\n</script>'

        text = re.sub(r'(?s)(<script type="application/jsonl"[^>]*)>(.*?)</script>', pack, text)
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n', "", text)
        for pattern, name, link in ((r"(?s)<style>(.*?)</style>", "page.css", f'<link rel="stylesheet" href="{up}page.css">'),
                                    (r"(?s)<script>(.*?)</script>", "page.js", f'<script src="{up}page.js"></script>')):
            part_of_page = re.search(pattern, text)
            self.shared[name] = part_of_page[1]
            text = text[:part_of_page.start()] + link + text[part_of_page.end():]
        return text

    def record_all(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            reasons = [reason for reason in pool.map(self.record, self.sources) if reason]
        for reason in reasons:
            print(f"  no page for {reason}")

    # ---- Documents ----
    def link_from(self, document, page=None):
        """A function from a link's target in that document to its target in the book, from its page or another."""
        folder = posixpath.dirname(document)
        start = posixpath.dirname(page or page_of(document)) or "."
        terms = {posixpath.basename(name)[:-5]: name for name, _, _ in self.entries["GLOSSARY.md"]}

        def link(target):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                return target
            path, _, fragment = target.partition("#")
            path = posixpath.normpath(posixpath.join(folder, path))
            if path == "GLOSSARY.md" and fragment in terms:
                return posixpath.relpath(terms[fragment], start)
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
            return posixpath.relpath(page, start) + ("#" + fragment if fragment else "")

        return link

    def frame(self, page, title, body, headings=(), turn=(None, None)):
        """A whole page: where the reader is, what is on the page, and how to go on: to the pages before and after it."""
        up = "../" * page.count("/")

        def entry(path, words):
            here = ' aria-current="page"' if page == page_of(path) else ""
            return f'<a href="{up}{page_of(path)}"{here}>{html.escape(words)}</a>'

        turns = [f'<a class="{way}" rel="{way}" href="{up}{to[0]}">{html.escape(plain(to[1]))}</a>'
                 for way, to in zip(("prev", "next"), turn) if to]
        if turns:
            body += f'\n<nav class="turn" aria-label="previous and next page">{"".join(turns)}</nav>'
        books = [f'<a href="{up}index.html">Contents</a>']
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
        if path in self.entries:
            body = self.linked_entries(path, body)
            self.entry_pages(path)
        else:
            self.note_sections(page_of(path), body)
        if path.endswith("/README.md"):
            body += "\n" + self.watch(folder)
        at = self.documents.index(path)
        around = [self.documents[at - 1] if at else None, self.documents[at + 1] if at + 1 < len(self.documents) else None]
        turn = [each and (page_of(each), self.titles[each]) for each in around]
        self.write(page_of(path), self.frame(page_of(path), self.titles[path], body, renderer.headings, turn))

    def linked_entries(self, document, body):
        """The list of all questions or words, each leading to its page."""
        for page, title, _ in self.entries[document]:
            words = Renderer(lambda target: target).inline(title)
            for tag in ("td", "h3"):
                body = re.sub(rf"(<{tag}\b[^>]*>){re.escape(words)}(</{tag}>)",
                              lambda m, page=page, words=words: f'{m[1]}<a href="{page}">{words}</a>{m[2]}', body, count=1)
        return body

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

    def index(self):
        """Where to begin, and the parts, with a sentence for each document."""
        start = "\n".join(f'<li><a href="{self.programs[source]}">{posixpath.basename(source)[:-3]}</a> ({minutes} minutes): {sentence}</li>'
                          for source, minutes, sentence in START if source in self.programs)
        turned = " and ".join(f'<a href="{page}">{TURNED_WORDS[source]}</a>' for source, page in self.programs.items() if source in TURNED)
        parts = []
        for title, sentence, documents in self.parts:
            items = "\n".join(f'<li class="level{path.count("/")}"><a href="{page_of(path)}">{html.escape(self.titles[path])}</a>: '
                              f"{html.escape(first_sentence(path))}</li>" for path in documents)
            parts.append(f'<h2 id="{anchor(title, set())}">{title}</h2>\n<p>{sentence}</p>\n<ul class="part">{items}</ul>')
        minutes = sum(each[1] for each in START)
        body = (f'<h1>{html.escape(self.titles["README.md"])}</h1>\n<p>{html.escape(first_sentence("README.md"))} '
                f'<a href="about.html">What this is, and what you need</a>.</p>\n'
                '<p><img src="07_pipelined_gemm/figures/ring_moves.svg" alt="A ring of stages at work"></p>\n'
                f'<h2 id="where-to-begin">Where to begin: {minutes} minutes</h2>\n'
                f'<ol>{start}</ol>\n' + (f"<p>Turn it yourself: {turned}.</p>\n" if turned else "") + "\n".join(parts))
        headings = [(2, "where-to-begin", "Where to begin")] + [(2, anchor(part[0], set()), part[0]) for part in self.parts]
        self.write("index.html", self.frame("index.html", self.titles["README.md"], body, headings, (None, ("about.html", "About"))))

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
        self.index()
        for path in sorted(self.folders):
            self.folder(path)
        missing = sorted(path for path in self.others if not os.path.isfile(f"{ROOT}/{path}"))
        if missing:
            sys.exit("book: a document links to what is not there: " + ", ".join(missing))
        for path in sorted(self.others):
            self.other(path)
        for name, text in self.shared.items():
            self.write(name, text)
        self.write("style.css", part("style.css"))
        self.write("search.js", part("search.js"))
        self.write("sections.js", "const SECTIONS = " + json.dumps(self.sections, ensure_ascii=False) + ";\n")
        pages = [os.path.getsize(path) for path in glob.glob(f"{self.target}/**/*.html", recursive=True)]
        print(f"{os.path.relpath(self.target)}/index.html: {len(self.documents)} documents, {len(self.programs)} programs to step "
              f"through, {len(self.others)} sources and figures; {sum(pages) / 1e6:.1f} MB in {len(pages)} pages, the largest {max(pages) / 1e6:.1f}")


ROOMS = [posixpath.dirname(path) for path in found("[0-9][0-9]_*/*/README.md")]
if len(sys.argv) < 2:
    sys.exit("usage: book.py FOLDER [SOURCES...]")
RECORDED = sys.argv[2:] or [path for path in found("[0-9][0-9]_*/*.cu", "[0-9][0-9]_*/pitfalls/*.cu", "common/book/*.cu",
                                                    *(f"{room}/{each}" for room in ROOMS for each in ("*.cu", "pitfalls/*.cu")))
                            if not posixpath.basename(path).startswith("bench_")]
Book(os.path.abspath(sys.argv[1]), RECORDED).make()
