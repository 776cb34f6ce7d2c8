"""markdown.py: the part of Markdown that this repository's READMEs use, as HTML: headings with anchors,
paragraphs, lists, tables, code blocks, quotes, folds, images, links, bold, emphasis and code."""
import html
import re

import colours

FOLD = re.compile(r"</?details>|<summary>.*</summary>")
# What figures.py fills with a part of a program: the listing that follows has a page to step through.
LISTING = re.compile(r"\x01(\S+)")
HEADING = re.compile(r"(#{1,6}) +(.*)")
ITEM = re.compile(r"([-*]|\d+\.) +")
DIVIDER = re.compile(r"\|?[ :|-]*-[ :|-]*")


def plain(text):
    """The words of a line of Markdown, without its marks."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[`*]", "", text)


def anchor(text, taken):
    """The anchor that GitHub gives a heading; a second one of the same name gets -1."""
    base = re.sub(r"[^\w\- ]", "", plain(text).lower()).replace(" ", "-")
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


class Renderer:
    """Renders one file. `link` turns the target of each link or image into that of the page; `steps` gives the
    page that steps through a program, or None."""

    def __init__(self, link, steps=lambda source: None):
        self.link = link
        self.steps = steps
        self.anchors = set()
        self.title = None
        self.headings = []  # (level, anchor, words), for the table of contents and the search
        self.listing = None

    def inline(self, text):
        kept = []

        def keep(fragment):
            kept.append(fragment)
            return f"\x00{len(kept) - 1}\x00"

        text = re.sub(r"(`+)(.+?)\1", lambda m: keep(f"<code>{html.escape(m[2].strip(), False)}</code>"), text)
        text = html.escape(text, False)
        text = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", lambda m: keep(
            f'<img src="{html.escape(self.link(m[2]))}" alt="{html.escape(plain(m[1]))}">'), text)
        text = re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", lambda m: keep(
            f'<a href="{html.escape(self.link(m[2]))}">') + m[1] + keep("</a>"), text)
        text = re.sub(r"\*\*(\S(?:.*?\S)?)\*\*", r"<strong>\1</strong>", text)
        text = re.sub(r"\*(\S(?:.*?\S)?)\*", r"<em>\1</em>", text)
        while "\x00" in text:
            text = re.sub(r"\x00(\d+)\x00", lambda m: kept[int(m[1])], text)
        return text

    def render(self, text):
        text = re.sub(r"(?m)^<!-- begin: (\S+\.cu)\b.*?-->\n", "\x01\\1\n", text)
        text = re.sub(r"(?m)^<!--.*?-->\n?", "", text, flags=re.S)
        return "\n".join(self.blocks(text.split("\n")))

    def blocks(self, lines):
        out, at = [], 0
        while at < len(lines):
            line = lines[at]
            heading = HEADING.fullmatch(line)
            if not line.strip():
                at += 1
            elif LISTING.fullmatch(line):
                self.listing = LISTING.fullmatch(line)[1]
                at += 1
            elif FOLD.fullmatch(line):
                words = re.fullmatch(r"<summary>(.*)</summary>", line)
                out.append(f"<summary>{self.inline(words[1])}</summary>" if words else line)
                at += 1
            elif line.startswith("```"):
                at = self.code(lines, at, out)
            elif heading:
                out.append(self.heading(len(heading[1]), heading[2]))
                at += 1
            elif line.startswith("|") and at + 1 < len(lines) and DIVIDER.fullmatch(lines[at + 1]):
                at = self.table(lines, at, out)
            elif line.startswith(">"):
                end = self.while_true(lines, at, lambda each: each.startswith(">"))
                inner = self.blocks([re.sub("^> ?", "", each) for each in lines[at:end]])
                out.append("<blockquote>" + "\n".join(inner) + "</blockquote>")
                at = end
            elif ITEM.match(line):
                at = self.list(lines, at, out)
            else:
                end = self.while_true(lines, at + 1, lambda each: each.strip() and not self.begins_block(each))
                out.append("<p>" + self.inline("\n".join(lines[at:end])) + "</p>")
                at = end
        return out

    @staticmethod
    def while_true(lines, at, condition):
        while at < len(lines) and condition(lines[at]):
            at += 1
        return at

    @staticmethod
    def begins_block(line):
        """Of numbers only 1 begins a list here: a line of a paragraph may begin with another one and a full stop."""
        return (line.startswith(("```", "|", ">", "\x01", "1. ")) or HEADING.fullmatch(line) or FOLD.fullmatch(line)
                or ITEM.match(line) and not line[0].isdigit())

    def heading(self, level, text):
        if self.title is None:
            self.title = plain(text)
        name = anchor(text, self.anchors)
        self.headings.append((level, name, plain(text)))
        return f'<h{level} id="{name}">{self.inline(text)}</h{level}>'

    def code(self, lines, at, out):
        end = self.while_true(lines, at + 1, lambda each: not each.startswith("```"))
        body = "\n".join(lines[at + 1:end])
        coloured = lines[at].strip("` ") in ("c", "cuda", "cpp")
        page = self.steps(self.listing) if self.listing else None
        self.listing = None
        if page:
            out.append(f'<p class="step"><a href="{html.escape(page)}">Step through this program</a></p>')
        out.append(f'<pre tabindex="0"><code>{colours.c(body) if coloured else html.escape(body, False)}</code></pre>')
        return end + 1

    @staticmethod
    def cells(line):
        """The cells of a row: a bar in code does not end one."""
        parts = re.findall(r"(?:`[^`]*`|\\\||[^|`])+|(?<=\|)(?=\|)", line.strip().strip("|"))
        return [part.replace("\\|", "|").strip() for part in parts]

    def table(self, lines, at, out):
        end = self.while_true(lines, at + 2, lambda each: each.startswith("|"))
        right = [cell.endswith(":") for cell in self.cells(lines[at + 1])]

        def row(tag, line):
            cells = self.cells(line)
            styles = [' class="number"' if i < len(right) and right[i] else "" for i in range(len(cells))]
            return "<tr>" + "".join(f"<{tag}{style}>{self.inline(cell)}</{tag}>"
                                    for cell, style in zip(cells, styles)) + "</tr>"

        head = row("th", lines[at])
        rows = [row("td", line) for line in lines[at + 2:end]]
        out.append(f'<div class="table" tabindex="0"><table><thead>{head}</thead>\n<tbody>'
                   + "\n".join(rows) + "</tbody></table></div>")
        return end

    def list(self, lines, at, out):
        numbered = lines[at][0].isdigit()
        items = []
        while at < len(lines) and ITEM.match(lines[at]) and lines[at][0].isdigit() == numbered:
            width = ITEM.match(lines[at]).end()
            item = [lines[at][width:]]
            at += 1
            while at < len(lines) and (lines[at].startswith("  ") or lines[at].strip() == ""
                                       and at + 1 < len(lines) and lines[at + 1].startswith("  ")):
                item.append(re.sub(r"^ {1,%d}" % width, "", lines[at]))
                at += 1
            blocks = self.blocks(item)
            if len(blocks) == 1 and blocks[0].startswith("<p>"):
                blocks = [blocks[0][3:-4]]
            items.append("<li>" + "\n".join(blocks) + "</li>")
            while at + 1 < len(lines) and not lines[at].strip() and ITEM.match(lines[at + 1]):
                at += 1
        tag = "ol" if numbered else "ul"
        out.append(f"<{tag}>" + "\n".join(items) + f"</{tag}>")
        return at
