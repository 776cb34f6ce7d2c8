#!/usr/bin/env python3
"""mutation_kinds: the changes that mutations.py makes, each of one statement of PTX.

KINDS has them by name. A kind is a function of (statements of a function, index) that yields (what, edits): what is
changed in the statement of that index, and the pieces (first, last, new text) of the PTX text that change."""
import re

ANY_TOKEN = re.compile(r"""//[^\n]* | /\*.*?\*/
  | \.loc[ \t]+\d+[ \t]+(?P<line>\d+)(?:[^\n]*inlined_at[ \t]+\d+[ \t]+(?P<outer>\d+))?[^\n]*
  | (?:\.(?:visible|weak|extern)[ \t]+)*\.(?:entry|func)\b[ \t]*(?:\([^)]*\)[ \t]*)?(?P<name>[\w$]+)
  | \.reg\b[^;]*; | \.[a-z][^\n]* | [{}] | (?P<label>[\w$]+):
  | (?P<statement>(?P<guard>@!?[%\w$]+\s+)?[a-z][\w.:]*(?:\s[^;]*)?;)""", re.X | re.S)
SYNCHRONISES = re.compile(r"(@\S+ )?(mbarrier\.|cp\.async|cp\.reduce|fence\.|bar\.|barrier\.|membar|red\.async|st\.async|"
                          r"wgmma\.(fence|commit|wait)|griddepcontrol)")
GUARDS_AT_MOST = 40  # statements that a dropped guard skips
REACH = 12  # from a wait to the branch that repeats it


class Statement:
    """One statement of PTX: where it is in the text, without and with its guard (@%p1)."""
    def __init__(self, found, lines):
        self.start, self.end = found.span("statement")
        self.guard = found.group("guard") or ""
        self.text = " ".join(found.group("statement")[len(self.guard):].split())
        self.lines = lines  # of the kernel, and of the functions that are inlined there
        self.opcode = self.text.split(" ")[0].rstrip(";")
        self.target = -1  # of a branch: where its label is

    def changed(self, text):
        """The edit that puts this text in its place."""
        return self.start, self.end, f"{self.guard}{text}" if text else ""

    def with_operand(self, operand, change):
        """The same with a changed operand: `change` computes %mutant from it."""
        wide = operand.startswith("%rd")
        narrow = operand.startswith("%rs")
        bits = 64 if wide else 16 if narrow else 32
        text = re.sub(re.escape(operand) + r"(?!\w)", "%mutant", self.text) if operand.startswith("%") else \
            re.sub(r"(?<![\w.])" + re.escape(operand) + r"(?=;$)", "%mutant", self.text)
        made = change.format(bits=bits, operand=operand)
        return self.start, self.end, f"{{ .reg .b{bits} %mutant; {made}; {self.guard}{text} }}"


def functions_of(text):
    """(name, statements) of each function of a PTX text."""
    functions, lines, labels = [], (0, 0, 0), {}
    for found in ANY_TOKEN.finditer(text):
        if found.group("name"):
            functions.append((found.group("name"), []))
        elif found.group("line"):
            inner, outer = int(found.group("line")), int(found.group("outer") or 0)
            lines = (lines[0], outer, inner) if outer else (inner, 0, 0)
        elif found.group("label"):
            labels[found.group("label")] = found.start()
        elif found.group("statement") and functions:
            functions[-1][1].append(Statement(found, lines))
    for statement in (each for _, statements in functions for each in statements):
        if statement.opcode.startswith("bra"):
            statement.target = labels.get(statement.text.split(" ")[-1].rstrip(";"), -1)
    return functions


# ---- The kinds of change ----
def replaced(opcode, *changes):
    """A statement whose text matches: each change (what, pattern, text) that alters it."""
    def kind(statements, i):
        statement = statements[i]
        if re.match(opcode, statement.text):
            for what, pattern, text in changes:
                new = re.sub(pattern, text, statement.text, count=1)
                if new != statement.text:
                    yield what, [statement.changed(new)]
    return kind


def deleted(opcode):
    return replaced(opcode, ("deleted", r"^.*$", ""))


def operand(opcode, pattern, *changes):
    """An operand, group 1 of the pattern: each change (what, statement that computes %mutant)."""
    def kind(statements, i):
        statement = statements[i]
        found = re.search(pattern, statement.text) if re.match(opcode, statement.text) else None
        if found:
            for what, change in changes:
                yield what, [statement.with_operand(found.group(1), change)]
    return kind


def number(opcode, pattern, *steps):
    """A literal operand, group 1, or the register that holds it: each step added to it."""
    def kind(statements, i):
        found = re.search(pattern, statements[i].text) if re.match(opcode, statements[i].text) else None
        for step in steps if found else ():
            value = found.group(1)
            if value.startswith("%"):
                yield f"{step:+d}", [statements[i].with_operand(value, f"add.s{{bits}} %mutant, {{operand}}, {step}")]
            elif int(value) + step >= 0:
                first, last = found.span(1)
                text = statements[i].text
                yield f"{step:+d}", [statements[i].changed(f"{text[:first]}{int(value) + step}{text[last:]}")]
    return kind


def cluster_barrier(statements, i):
    if "barrier.cluster.arrive" in statements[i].opcode:
        wait = next((each for each in statements[i + 1:] if "barrier.cluster.wait" in each.opcode), None)
        if wait:
            yield "arrive and wait deleted", [statements[i].changed(""), wait.changed("")]


def wait_deleted(statements, i):
    """Its answer is yes, and nobody has asked."""
    found = re.match(r"mbarrier\.(try|test)_wait\S* (\S+),", statements[i].text)
    if found:
        yield "deleted", [statements[i].changed(f"setp.eq.s32 {found.group(2)}, 0, 0;")]


def wait_asked_once(statements, i):
    if re.match(WAIT, statements[i].text):
        for branch in statements[i + 1:i + REACH]:
            if 0 <= branch.target < branch.start:
                yield "asked once", [branch.changed("")]
                break


def coordinates(statements, i):
    found = re.match(r"cp\.(?:async|reduce\.async)\.bulk\.(?:prefetch\.)?tensor.*?\{([^}]*)\}", statements[i].text)
    for place, name in enumerate(found.group(1).split(", ")) if found else ():
        if name.startswith("%"):
            yield f"coordinate {place} +8", [statements[i].with_operand(name, "add.s{bits} %mutant, {operand}, 8")]


def election(statements, i):
    found = re.match(r"elect\.sync \S+\|(\S+),", statements[i].text)
    if found:
        yield "all elected", [statements[i].changed(f"{statements[i].text} setp.eq.s32 {found.group(1)}, 0, 0;")]


def guard(statements, i):
    """A branch over a few statements of which one synchronises: never taken."""
    if statements[i].guard and statements[i].target > statements[i].start:
        skipped = [each for each in statements[i + 1:i + GUARDS_AT_MOST] if each.start < statements[i].target]
        first = next((each.opcode for each in skipped if SYNCHRONISES.match(each.text)), None)
        if first:
            yield f"of {first}", [statements[i].changed("")]


def swapped(statements, i):
    if i + 1 < len(statements):
        first, second = statements[i:i + 2]
        if all(SYNCHRONISES.match(each.text) for each in (first, second)) and first.text != second.text:
            yield f"with {second.opcode}", [(first.start, first.end, second.guard + second.text),
                                            (second.start, second.end, first.guard + first.text)]


def issued_twice(statements, i):
    if re.match(ISSUED, statements[i].text):
        yield "twice", [statements[i].changed(f"{statements[i].text} {statements[i].guard}{statements[i].text}")]


def warp_leaves(statements, i):
    """Every second warp of a row of threads exits before it."""
    if SYNCHRONISES.match(statements[i].text):
        leaves = "{ .reg .b32 %t; .reg .pred %p; mov.u32 %t, %tid.x; and.b32 %t, %t, 32; setp.ne.u32 %p, %t, 0; @%p exit; } "
        yield "every second", [(statements[i].start, statements[i].start, leaves)]


WAIT = r"mbarrier\.(try|test)_wait"
ARRIVE = r"mbarrier\.arrive(?!.*expect_tx)|cp\.async\.mbarrier\.arrive"
EXPECT = r"mbarrier\.(arrive\.)?expect_tx"
BULK = r"cp\.(reduce\.)?async\.bulk\.(?!commit|wait|prefetch)"
TENSOR_LOAD = r"cp\.async\.bulk\.tensor\S*shared::c\w+\.global"
ISSUED = BULK + r"|mbarrier\.(arrive|expect)|cp\.async\.mbarrier|(st|red)\.async|bar\.arrive|barrier\.cluster\.arrive"
LAST = r"(%?\w+);$"
ADDRESS = r"\[(%r\d+)"
KINDS = {
    "fence deleted": deleted(r"fence\.|membar"),
    "barrier deleted": deleted(r"(bar|barrier)\.(?!warp|cluster)"),
    "__syncwarp deleted": deleted(r"bar\.warp"),
    "cluster barrier deleted": cluster_barrier,
    "half of a cluster barrier deleted": deleted(r"barrier\.cluster"),
    "arrive deleted": deleted(ARRIVE),
    "expect deleted": replaced(EXPECT, ("arrives only", r"^(mbarrier\.arrive)\.expect_tx(.*), \S+;$", r"\1\2;"),
                               ("deleted", r"^mbarrier\.expect_tx.*$", "")),
    "wait deleted": wait_deleted,
    "wait asked once": wait_asked_once,
    "group wait deleted": deleted(r"(cp\.async\.(bulk\.)?wait|wgmma\.wait)"),
    "commit deleted": deleted(r"(cp\.async\.(bulk\.)?commit|wgmma\.commit)"),
    "wgmma.fence deleted": deleted(r"wgmma\.fence"),
    "init deleted": deleted(r"mbarrier\.in(it|val)"),
    "copy deleted": deleted(r"cp\.(reduce\.)?async\.(?!.*(commit|wait|mbarrier\.arrive))|(st|red)\.async"),
    "store deleted": deleted(r"st\.(volatile\.)?(shared|global)"),
    "dependency deleted": deleted(r"griddepcontrol\.wait"),
    "fence weakened": replaced(r"fence\.|membar", ("to a thread's", r"^fence\.proxy\.async.*$", "membar.cta;"),
                               ("other space", r"async\.shared::cta", "async.global"),
                               (".acq_rel.cta", r"^(membar\.(gl|sys)|fence\.(sc|acq_rel)\.(gpu|sys|cluster));", "fence.acq_rel.cta;")),
    "release relaxed": replaced(r"(mbarrier\.arrive|barrier\.cluster\.arrive|st|red|atom)\b", (".relaxed", r"\.release", ".relaxed"),
                                (".relaxed", r"\.acq_rel", ".acquire"),
                                (".relaxed", r"^(mbarrier\.arrive(\.expect_tx)?)(?=\.shared|\.b64)", r"\1.relaxed.cluster"),
                                (".relaxed", r"^barrier\.cluster\.arrive(?!\.rel)", "barrier.cluster.arrive.relaxed")),
    "acquire relaxed": replaced(r"(mbarrier\.(try|test)_wait|ld|atom)\b", (".relaxed", r"\.acquire", ".relaxed"),
                                (".relaxed", r"\.acq_rel", ".release"),
                                (".relaxed", r"^(mbarrier\.\w+_wait(\.parity)?)(?=\.shared|\.b64)", r"\1.relaxed.cluster")),
    "scope narrowed": replaced(r"(mbarrier\.(arrive|try|test)|ld|st|red|atom|fence\.(?!proxy|mbarrier))",
                               (".cta", r"\.(cluster|gpu|sys)(?=\.|;)", ".cta")),
    "group wait .read": replaced(r"cp\.async\.bulk\.wait_group \d", (".read", r"wait_group", "wait_group.read")),
    "group count": number(r"(cp\.async\.(bulk\.)?wait_group|wgmma\.wait_group)", r" (\d+);$", 1),
    "init count": number(r"mbarrier\.init", r", " + LAST, 1, -1),
    "expected bytes": number(EXPECT, r", " + LAST, 16, -16),
    "bytes of a copy": number(BULK + r"(?!tensor)", r"\], (%r\d+|\d+)[,;]", 16, -16),
    "count of a barrier": number(r"(bar|barrier)\.(?!warp|cluster)", r", " + LAST, 32, -32),
    "other named barrier": number(r"(bar|barrier)\.(?!warp|cluster)", r" (%?\w+),", 1),
    "parity flipped": operand(WAIT + r".*\.parity", r"\], (%r\d+|\d+)", ("flipped", "xor.b32 %mutant, {operand}, 1")),
    "parity never flipped": replaced(r"xor\.b32 (%r\d+), %r\d+, 1;", ("constant", r", 1;$", ", 0;")),
    "other barrier waited for": operand(WAIT, ADDRESS, ("+8", "add.s32 %mutant, {operand}, 8")),
    "other barrier arrived at": operand(r"mbarrier\.(arrive|expect)", ADDRESS, ("+8", "add.s32 %mutant, {operand}, 8")),
    "other barrier for a copy": operand(TENSOR_LOAD + r"|cp\.async\.bulk\.shared\S*\.global|(st|red)\.async",
                                        r".*\[(%r\d+)\]", ("+8", "add.s32 %mutant, {operand}, 8")),
    "other rank": operand(r"mapa", LAST, ("^1", "xor.b32 %mutant, {operand}, 1")),
    "mask": operand(r"cp\.async\.bulk.*multicast", r", (%rs\d+)[,;]", ("^1", "xor.b16 %mutant, {operand}, 1"),
                    ("^2", "xor.b16 %mutant, {operand}, 2")),
    "mask of a warp": replaced(r"bar\.warp", ("half", r"-1|0xffffffff", "65535")),
    "coordinate": coordinates,
    "shared address of a copy": operand(BULK, r"\[(%r\d+)\]", ("+128", "add.s32 %mutant, {operand}, 128")),
    "shared address of a thread": operand(r"(ld|st)\.shared", ADDRESS, ("+16", "add.s32 %mutant, {operand}, 16")),
    "matrix descriptor": operand(r"wgmma\.mma", r"\}, (%rd\d+),", ("+32 bytes", "add.s64 %mutant, {operand}, 2"),
                                 ("stride", "xor.b64 %mutant, {operand}, " + str(1 << 36)),
                                 ("swizzle", "xor.b64 %mutant, {operand}, " + str(1 << 62))),
    "election dropped": election,
    "guard dropped": guard,
    "issued twice": issued_twice,
    "a warp leaves": warp_leaves,
    "neighbours swapped": swapped,
    "stage compare": number(r"setp\.(eq|ne)\.[su]32 %p\d+, %r\d+, [2-8];", LAST, 1, -1),
}
