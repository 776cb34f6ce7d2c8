"""picture.py: an SVG put together piece by piece, readable on light and dark pages."""
import os
import re
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

STYLE = """
  text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #16191d; }
  .title { font: 600 13px system-ui, sans-serif; }
  .small { font-size: 10px; }
  .faint { fill: #5d6570; }
  .line { stroke: #5d6570; fill: none; }
  .cell { stroke: #ffffff; stroke-width: 1; }
  .empty { fill: #e6e9ee; }
  .mark { stroke: #c2185b; stroke-width: 2; fill: none; }
  .grid { stroke: #e6e9ee; fill: none; }
  .curve { fill: none; stroke-width: 1.6; }
  .arrow { stroke: #5d6570; fill: none; stroke-width: 1.6; }
  .head { fill: #5d6570; }
  .l0 { stroke: #1f77b4; } .l1 { stroke: #c45a00; } .l2 { stroke: #1e8a4c; } .l3 { stroke: #8a6d00; }
  .l4 { stroke: #0b8ea5; } .l5 { stroke: #c23b22; } .l6 { stroke: #8e4585; } .l7 { stroke: #6b7a1a; }
  .l8 { stroke: #5d6570; }
  .c0 { fill: #7fb2e5; } .c1 { fill: #f0b775; } .c2 { fill: #86cfa9; } .c3 { fill: #e7d97a; }
  .c4 { fill: #9ad7ec; } .c5 { fill: #ec9a86; } .c6 { fill: #d7a3cd; } .c7 { fill: #c3c9a3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ee; }
    .faint { fill: #9aa4b1; }
    .line { stroke: #9aa4b1; }
    .cell { stroke: #14171c; }
    .empty { fill: #2a3039; }
    .mark { stroke: #ff6fa3; }
    .grid { stroke: #2a3039; }
    .arrow { stroke: #9aa4b1; }
    .head { fill: #9aa4b1; }
    .l0 { stroke: #7fb2e5; } .l1 { stroke: #f0b775; } .l2 { stroke: #86cfa9; } .l3 { stroke: #e7d97a; }
    .l4 { stroke: #9ad7ec; } .l5 { stroke: #ec9a86; } .l6 { stroke: #d7a3cd; } .l7 { stroke: #c3c9a3; }
    .l8 { stroke: #9aa4b1; }
    .c0 { fill: #2f6299; } .c1 { fill: #8f5b1d; } .c2 { fill: #2c7450; } .c3 { fill: #76691c; }
    .c4 { fill: #2a6d80; } .c5 { fill: #93452f; } .c6 { fill: #7a4470; } .c7 { fill: #5f6542; }
  }
"""


def styles_of(drawn):
    """The rules of STYLE whose classes are drawn."""
    used = {name for names in re.findall(r'class="([^"]*)"', drawn) for name in names.split()}
    kept = re.sub(r"\.(\w+) \{[^}]*\} ?", lambda rule: rule[0] if rule[1] in used else "", STYLE)
    return re.sub(r"\n *(?=\n)", "", re.sub(r" +\n", "\n", kept))


class Picture:
    """SVG, put together piece by piece; its size is that of what was drawn."""

    def __init__(self, description):
        self.description = description
        self.parts = []
        self.cells, self.words = {}, {}
        self.width = self.height = 0

    def reach(self, x, y):
        self.width, self.height = max(self.width, x), max(self.height, y)

    def box(self, x, y, width, height, style):
        self.reach(x + width, y + height)
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{style}"/>')

    def outline(self, x, y, width, height):
        self.reach(x + width, y + height)
        return f"M{x:g},{y:g}h{width:g}v{height:g}h{-width:g}z"

    def bars(self, spans, y, height, style):
        """A row of boxes: where each begins, and its width."""
        if spans:
            self.parts.append(f'<path d="{" ".join(self.outline(x, y, width, height) for x, width in spans)}" class="{style}"/>')

    def cell(self, x, y, width, height, style, words=""):
        """A box of a grid with a word in it. All of one style are one path, behind everything else, and all words at one
        height one text."""
        self.cells.setdefault(style, []).append(self.outline(x, y, width, height))
        if words != "":
            word = f'<tspan x="{x + width / 2:g}">{escape(str(words))}</tspan>'
            self.words.setdefault(y + height / 2 + 4, []).append(word)

    def text(self, x, y, words, style="", anchor="start"):
        self.reach(x + (7.3 * len(str(words)) if anchor == "start" else 0), y + 4)
        style = f' class="{style}"' if style else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{style}>{escape(str(words))}</text>')

    def path(self, points, style="line"):
        for x, y in points:
            self.reach(x, y)
        text = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline points="{text}" class="{style}"/>')

    def grid(self, left, right, heights):
        """Lines from left to right."""
        lines = " ".join(f"M{left:g},{y:g}H{right:g}" for y in heights)
        self.parts.append(f'<path d="{lines}" class="grid"/>')

    def marks(self, points, number):
        """The points of curve `number`: the shape says which curve it is, for readers who do not see the colour."""
        shapes = [[(-3, -3), (3, -3), (3, 3), (-3, 3)], [(0, -4), (4, 3), (-4, 3)], [(0, -4), (4, 0), (0, 4), (-4, 0)],
                  [(-4, -3), (4, -3), (0, 4)], [(-1, -4), (1, -4), (1, 4), (-1, 4)], [(-4, -1), (4, -1), (4, 1), (-4, 1)]]
        shape = shapes[number % len(shapes)]
        drawn = " ".join("M" + " ".join(f"{x + dx:g},{y + dy:g}" for dx, dy in shape) + "z" for x, y in points)
        self.parts.append(f'<path d="{drawn}" class="curve l{number}"/>')

    def arrow(self, points):
        """A line through the points with a head at its end, which runs right, left, up or down."""
        self.path(points, "arrow")
        (x0, y0), (x, y) = points[-2:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        corners = [(x + 3 * dx, y + 3 * dy), (x - 6 * dx + 4 * dy, y - 6 * dy + 4 * dx), (x - 6 * dx - 4 * dy, y - 6 * dy - 4 * dx)]
        self.parts.append('<polygon points="' + " ".join(f"{a:g},{b:g}" for a, b in corners) + '" class="head"/>')

    def svg(self):
        width, height = round(self.width + 12), round(self.height + 10)
        cells = [f'<path d="{" ".join(boxes)}" class="cell {style}"/>' for style, boxes in self.cells.items()]
        words = [f'<text y="{y:g}" text-anchor="middle" class="small">{"".join(row)}</text>' for y, row in self.words.items()]
        drawn = "\n".join(cells + words + self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" role="img">\n<title>{escape(self.description)}</title>\n'
                f"<style>{styles_of(drawn)}</style>\n{drawn}\n</svg>\n")
