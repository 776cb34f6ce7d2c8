"""tables.py: reads every CSV of the project, and draws those that a chapter measured as small line plots.

A measured table begins with lines "# GPU, driver, date; remark", which are notes, and then has a header. ncu prints
lines of its own around a table whose every line begins with a quotation mark.
"""
import csv
import os

from picture import ROOT, Picture


class Table:
    """header: the names of the columns; rows: lists of texts; notes: the lines behind "#"."""

    def __init__(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            lines = file.read().splitlines()
        self.notes = [line.lstrip("# ") for line in lines if line.startswith("#")]
        self.header, *self.rows = list(csv.reader(line for line in lines if line and not line.startswith("#"))) or [[]]
        self.uneven = any(len(row) != len(self.header) for row in self.rows)

    def records(self):
        return [dict(zip(self.header, row)) for row in self.rows]

    @property
    def stamp(self):
        """GPU, driver and date."""
        return self.notes[0].split(";")[0]


def records(path):
    """The rows of a table as dictionaries."""
    return Table(path).records()


def lines(path):
    """The lines of a file without a header, each as a list of texts."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def profile(path):
    """The rows of what ncu --csv printed."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if line.startswith('"')))


def counted(path):
    """{metric: value} of each kernel that ncu profiled, in turn."""
    kernels = {}
    for row in profile(path):
        kernels.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return list(kernels.values())


def write(path, rows, *notes):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {note}\n" for note in notes)
        csv.writer(file, lineterminator="\n").writerows(rows)


def publish(path, stamp, rows, first, others):
    """Writes the table and prints it: its first column in one format, the others in another."""
    write(path, rows, stamp)
    for row in rows:
        print(f"{row[0]:{first}}" + "".join(f"{cell:{others}}" for cell in row[1:]))


def measured(chapter, name):
    return Table(os.path.join(ROOT, chapter, "measured", name + ".csv"))


def in_order(values):
    return list(dict.fromkeys(values))


def panel(picture, left, top, title, labels, lines, most, styles):
    """One plot: a line for each (name, values); values go up to `most`; labels are below the points."""
    width, height = 40 * (len(labels) - 1), 110
    x = lambda i: left + 40 * i
    y = lambda value: top + 14 + height * (1 - float(value) / most)
    picture.text(left, top + 4, title, "small")
    levels = [most * part / 4 for part in range(5)]
    picture.grid(left, left + width, map(y, levels))
    for level in levels:
        picture.text(left - 8, y(level) + 3, f"{level:g}", "small faint", anchor="end")
    for i, label in enumerate(labels):
        picture.text(x(i), top + 30 + height, label, "small faint", anchor="middle")
    for name, values in lines:
        points = [(x(i), y(value)) for i, value in enumerate(values) if value is not None]
        number = styles[name]
        picture.path(points, f"curve l{number}")
        picture.marks(points, number)


def legend(picture, left, top, names, styles, across):
    for i, name in enumerate(names):
        x, y = left + 170 * (i % across), top + 16 * (i // across)
        picture.path([(x, y), (x + 24, y)], f"curve l{styles[name]}")
        picture.marks([(x + 12, y)], styles[name])
        picture.text(x + 30, y + 4, name, "small")


def speeds():
    """Copies: one panel for each tile, one line for each way, over the size of the matrix."""
    table = measured("03_tma_store", "copy_speed")
    rows = [row for row in table.records() if row["tile"] != "-"]
    ways, tiles = in_order(row["way"] for row in rows), in_order(row["tile"] for row in rows)
    sizes = in_order(row["size"] for row in rows)
    value = {(row["way"], row["tile"], row["size"]): row["of cudaMemcpy"] for row in rows}
    styles = {way: i for i, way in enumerate(ways)}
    picture = Picture("Copies by threads and by TMA: throughput as a fraction of cudaMemcpy's, over the size of the matrix")
    picture.text(8, 18, "Copies by threads and by TMA: throughput as a fraction of cudaMemcpy's, over MiB", "title")
    for i, tile in enumerate(tiles):
        lines = [(way, [value.get((way, tile, size)) for size in sizes]) for way in ways]
        panel(picture, 44 + 214 * (i % 3), 46 + 158 * (i // 3), f"tile {tile} (rows x columns)",
              [size.split()[0] for size in sizes], lines, 1.2, styles)
    below = 46 + 158 * ((len(tiles) + 2) // 3) + 12
    legend(picture, 44, below, ways, styles, 3)
    picture.text(44, below + 16 * ((len(ways) + 2) // 3) + 8, table.stamp, "small faint")
    return picture


def sums():
    """04: adding to sums, over the size of the sums."""
    table = measured("04_store_reduce", "accumulate")
    rows = [row for row in table.records() if row["blocks"] == "264"]
    ways, sizes = in_order(row["way"] for row in rows), in_order(row["MiB"] for row in rows)
    value = {(row["way"], row["MiB"]): row["GB/s"] for row in rows}
    styles = {way: i for i, way in enumerate(ways)}
    picture = Picture("Adding tiles to sums in global memory: GB/s for each way, over the size of the sums")
    picture.text(8, 18, "Adding tiles to sums in global memory, 264 blocks: GB/s of sums over their size in MiB", "title")
    plain = [way for way in ways if "prefetched" not in way]
    ahead = [way for way in ways if "prefetched" in way or way == "cudaMemcpy"]
    for i, (title, chosen) in enumerate((("as they are", plain), ("with a prefetch into L2", ahead))):
        lines = [(way, [value.get((way, size)) for size in sizes]) for way in chosen]
        panel(picture, 56 + 290 * i, 46, title, sizes, lines, 4000, styles)
    legend(picture, 56, 214, ways, styles, 3)
    picture.text(56, 214 + 16 * ((len(ways) + 2) // 3) + 8, table.stamp, "small faint")
    return picture
