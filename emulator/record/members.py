#!/usr/bin/env python3
"""members.py RECORDING: adds the names of what lies in shared memory to a recording (RECORDING.md, "member"): the
members of the struct that a kernel puts into its dynamic shared memory, and the elements of arrays.

The machine code knows sizes, but no names. So the declarations are read in the source, and laid out as C does.
A declaration that this does not understand, or that the recording contradicts, names nothing: bytes without a name
are shown by their offsets. The recording is the witness: barriers are initialised where the struct has 64-bit
members, on lines that mention them, and every copy stays within one member."""
import ast
import json
import os
import re
import sys
from math import prod

SIZES = {"bool": 1, "char": 1, "int8_t": 1, "uint8_t": 1, "unsigned char": 1,
         "int16_t": 2, "uint16_t": 2, "short": 2, "half": 2, "__half": 2, "__nv_bfloat16": 2,
         "int": 4, "unsigned": 4, "unsigned int": 4, "int32_t": 4, "uint32_t": 4, "float": 4,
         "long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "int64_t": 8, "uint64_t": 8,
         "size_t": 8, "double": 8, "float2": 8, "uint2": 8, "int2": 8, "float4": 16, "uint4": 16, "int4": 16}
BARRIER_BYTES = 8
LARGEST_ALIGNMENT = 1024


class Unclear(Exception):
    """The source does not say it in a way that this program understands."""


def without_comments(text):
    return re.sub(r'//[^\n]*|/\*.*?\*/', lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)


def closing(text, at):
    """The index after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "({[") - (text[i] in ")}]")
        if depth == 0:
            return i + 1
    raise Unclear


def split_outside(text, separator=","):
    """The parts between the separators that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "({[<") - (character in ")}]>")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


class Source:
    """A file with all that it includes by quotes: its constants and structs."""

    def __init__(self, path):
        self.text = ""
        self.seen = set()
        self.read(path)
        self.constants = {}  # name: the expressions that define it
        for body in re.findall(r"\benum\b[^;{}]*\{([^{}]*)\}", self.text):
            before = "-1"
            for entry in split_outside(body):
                name, _, value = entry.partition("=")
                before = value.strip() or f"({before}) + 1"
                self.define(name, before)
        for name, value in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S[^\n]*)", self.text, re.MULTILINE):
            self.define(name, value)
        for entries in re.findall(r"\b(?:const|constexpr)\s+(?:[\w:]+\s+)+(\w+\s*=[^;]+);", self.text):
            for entry in split_outside(entries):
                name, _, value = entry.partition("=")
                self.define(name, value)
        # name: the type of an element, and the dimensions, of typedef int Tile[ROWS][COLUMNS];
        self.array_types = {name: (element, dimensions) for element, name, dimensions in
                            re.findall(r"\btypedef\s+([\w:\s]+?)\s+(\w+)\s*((?:\[[^\[\]]*\]\s*)+);", self.text)}

    def read(self, path):
        path = os.path.realpath(path)
        if path in self.seen:
            return
        self.seen.add(path)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = without_comments(file.read())
        except OSError:
            return
        self.text += text
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
            self.read(os.path.join(os.path.dirname(path), name))

    def define(self, name, value):
        self.constants.setdefault(name.strip(), set()).add(value.strip())

    def value(self, text, known, depth=0):
        """The value of a constant expression; `known`: parameters of the template."""
        if depth > 20:
            raise Unclear
        text = re.sub(r"\bsizeof\s*\(?\s*([\w ]+?)\s*\)?(?=\W|$)", lambda match: str(self.size_of(match[1])), text)
        text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text).replace("/", "//")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            raise Unclear from None
        return self.value_of(tree, known, depth)

    def value_of(self, node, known, depth):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            if node.id in known:
                return known[node.id]
            values = {self.value(text, known, depth + 1) for text in self.constants.get(node.id, ())}
            if len(values) == 1:
                return values.pop()
        operations = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
                      ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b, ast.LShift: lambda a, b: a << b,
                      ast.RShift: lambda a, b: a >> b, ast.BitOr: lambda a, b: a | b, ast.BitAnd: lambda a, b: a & b}
        if isinstance(node, ast.BinOp) and type(node.op) in operations:
            left, right = self.value_of(node.left, known, depth), self.value_of(node.right, known, depth)
            if left < 0 or right < 0 or (right == 0 and isinstance(node.op, (ast.FloorDiv, ast.Mod))) or right > 1 << 40:
                raise Unclear  # C rounds negative numbers in another way
            return operations[type(node.op)](left, right)
        raise Unclear

    @staticmethod
    def size_of(kind):
        kind = re.sub(r"\s+", " ", re.sub(r"\b(?:const|volatile|std::)\b", "", kind)).strip()
        if kind not in SIZES:
            raise Unclear
        return SIZES[kind]

    def dimensions(self, brackets, known):
        return [self.value(each, known) for each in re.findall(r"\[([^\[\]]*)\]", brackets)]

    def members(self, declarations, known):
        """[(name, bytes of an element, alignment, dimensions)] of the declarations of a struct or of variables."""
        found = []
        for declaration in split_outside(declarations, ";"):
            alignment = 1
            for match in re.finditer(r"(?:alignas|__align__|__align)\s*\(([^()]*)\)", declaration):
                alignment = max(alignment, self.value(match[1], known))
            declaration = re.sub(r"(?:alignas|__align__|__align)\s*\([^()]*\)", "", declaration).strip()
            match = re.fullmatch(r"((?:[\w:]+\s+)+)(\w+\s*(?:\[.*\])?(?:\s*,.*)?)", declaration, re.DOTALL)
            if not match:
                raise Unclear
            kind, inside = self.array_types.get(match[1].strip(), (match[1], ""))
            size = self.size_of(kind)
            inner = [prod(self.dimensions(inside, known))] if inside else []
            for declarator in split_outside(match[2]):
                parts = re.fullmatch(r"(\w+)\s*((?:\[[^\[\]]*\]\s*)*)", declarator)
                if not parts:
                    raise Unclear
                found.append((parts[1], size, max(alignment, size), self.dimensions(parts[2], known) + inner))
        return found

    def struct(self, name, arguments, known):
        """The members of a struct, laid out: ([(name, offset, bytes of an element, dimensions)], bytes)."""
        bodies = []
        for match in re.finditer(r"\bstruct\b[^;{}()]*\{", self.text):
            end = closing(self.text, match.end() - 1)
            after = re.match(r"\s*(\w*)\s*;", self.text[end:])
            head = match[0][:-1].split(":")[0].split()
            if after and (after[1] == name or (not after[1] and head[-1] == name)):
                before = re.search(r"\btemplate\s*<([^<>]*)>\s*$", self.text[:match.start()])
                bodies.append((self.text[match.end():end - 1], before[1] if before else ""))
        if len(set(bodies)) != 1 or "{" in bodies[0][0] or "(" in re.sub(r"alignas\s*\(|__align__\s*\(", "", bodies[0][0]):
            raise Unclear
        body, parameters = bodies[0]
        known = dict(zip(parameter_names(parameters), [self.value(each, known) for each in split_outside(arguments)]))
        offset, largest, laid = 0, 1, []
        for member, size, alignment, dimensions in self.members(body, known):
            offset = -(-offset // alignment) * alignment
            laid.append((member, offset, size, dimensions))
            largest = max(largest, alignment)
            offset += size * prod(dimensions)
        return laid, -(-offset // largest) * largest


def parameter_names(parameters):
    return [re.sub(r"\s*=.*", "", each).split()[-1] for each in split_outside(parameters)]


def kernel_body(source, launch):
    """The body of a kernel, and the values of its template's parameters."""
    name, _, arguments = launch["kernel"].partition("<")
    name = name.split("::")[-1]
    found = []
    for match in re.finditer(r"\b" + re.escape(name) + r"\s*\(", source.text):
        after = closing(source.text, match.end() - 1)
        brace = re.match(r"\s*\{", source.text[after:])
        if brace:
            begin = after + brace.end()
            head = re.split(r"[;}]", source.text[:match.start()])[-1]
            template = re.search(r"\btemplate\s*<([^<>]*)>", head)
            found.append((source.text[begin:closing(source.text, begin - 1) - 1], template[1] if template else ""))
    if len(found) != 1:
        raise Unclear
    body, parameters = found[0]
    values = [int(each) if re.fullmatch(r"\d+", each) else None for each in split_outside(arguments.rstrip(">"))]
    return body, {name: value for name, value in zip(parameter_names(parameters), values) if value is not None}


class Witness:
    """What the recording says of one launch: where barriers and copies are, and on which lines."""

    def __init__(self, launch):
        self.launch = launch
        self.variables = {}  # name, without its namespace: (offset, bytes)
        self.barriers = {}  # offset: the source lines that initialise it, each with that of the function inlined there
        self.pieces = set()  # (offset, bytes) of copies
        self.shared_bytes = 0

    def agrees(self, members, base, end, named=False):
        """Do the recorded barriers and copies of base to end fit the members? named: it is sure that they lie there;
        otherwise a line that initialises a barrier has to mention it."""
        words = {name for name, _, size, _ in members if size == BARRIER_BYTES}
        for address, lines in self.barriers.items():
            if not base <= address < end:
                continue
            at = [(name, size) for name, offset, size, dimensions in members
                  if 0 <= address - base - offset < size * prod(dimensions) and (address - base - offset) % size == 0]
            if len(at) != 1 or at[0][1] != BARRIER_BYTES:
                return False
            for line, inner in lines:
                mentioned = words & set(re.findall(r"\w+", line)) or words & set(re.findall(r"\w+", inner))
                if mentioned and at[0][0] not in mentioned:
                    return False
                named |= bool(mentioned)
        for address, length in self.pieces:
            if base <= address < end and not any(offset <= address - base and address + length - base <= offset + size * prod(dimensions)
                                                 for _, offset, size, dimensions in members):
                return False
        return named


def index_of(size, dimensions, barrier):
    """How many of the dimensions are indices in a name, and how far their elements are apart: tiles[2] is a tile, of
    which the last dimension is the inside."""
    indices = dimensions if barrier else dimensions[:-1]
    return indices, size * prod(dimensions[len(indices):])


def line_of(name, launch, offset, size, dimensions, barriers):
    holds = any(offset <= address < offset + size * prod(dimensions) for address in barriers)
    indices, stride = index_of(size, dimensions, holds and size == BARRIER_BYTES)
    return {"member": name, "launch": launch["launch"], "offset": offset, "bytes": size * prod(dimensions),
            "indices": indices, "stride": stride}


def members_in_struct(source, body, known, witness, name, offset):
    """The members of the struct that lies in extern __shared__ NAME[]."""
    casts = re.findall(r"(?:\(\s*|reinterpret_cast\s*<\s*)(\w+)\s*(?:<([^<>]*)>\s*)?[*&]\s*[)>]\s*\(?\s*(?:(\w+)\s*\(\s*)?"
                       + re.escape(name) + r"\b\s*\)*\s*[;,]", body)
    if len(casts) != 1:
        raise Unclear
    kind, arguments, rounded = casts[0]
    members, size = source.struct(kind, arguments, known)
    bases = {offset}
    if rounded:
        bases |= {-(-offset // (1 << power)) * (1 << power) for power in range(LARGEST_ALIGNMENT.bit_length())}
    end = witness.shared_bytes
    fitting = [base for base in bases if base + size <= end and witness.agrees(members, base, end)]
    if len(fitting) != 1:
        raise Unclear
    return [line_of(member, witness.launch, fitting[0] + at, element, dimensions, witness.barriers)
            for member, at, element, dimensions in members]


def arrays_of(source, body, known, witness):
    """The arrays of more than one dimension among the kernel's variables: PTX gives their bytes alone."""
    found = []
    for declaration in re.findall(r"(?<!extern )\b__shared__\s+([^;]*\[[^;]*);", body):
        try:
            for name, size, _, dimensions in source.members(declaration, known):
                offset, length = witness.variables.get(name, (0, 0))
                if len(dimensions) > 1 and length == size * prod(dimensions):
                    found.append(line_of(name, witness.launch, offset, size, dimensions, witness.barriers))
        except Unclear:
            continue
    return found


def members_in_variable(source, kind, known, witness, name):
    """The members of the struct that is the whole of a variable in static shared memory."""
    members, size = source.struct(kind, "", known)
    offset, length = witness.variables.get(name, (0, 0))
    if length != size or not witness.agrees(members, offset, offset + size, named=True):
        raise Unclear
    return [line_of(member, witness.launch, offset + at, element, dimensions, witness.barriers)
            for member, at, element, dimensions in members]


def lines_of(witness, sources):
    for source in sources:
        try:
            body, known = kernel_body(source, witness.launch)
        except Unclear:
            continue
        found = arrays_of(source, body, known, witness)
        for kind, name in re.findall(r"(?<!extern )\b__shared__\s+(?:struct\s+)?(\w+)\s+(\w+)\s*;", body):
            try:
                found += members_in_variable(source, kind, known, witness, name)
            except Unclear:
                continue
        for name, (offset, length) in witness.variables.items():
            if length == 0:
                try:
                    found += members_in_struct(source, body, known, witness, name, offset)
                except Unclear:
                    continue
        return found
    return []


def read(path):
    """The paths of a recording's source files, and its launches as witnesses."""
    files, places, witnesses, cluster = {}, {}, {}, None
    with open(path, encoding="utf-8", errors="replace") as recording:
        for line in recording:
            if line[0] == "{":
                value = json.loads(line)
                if "path" in value:
                    files[value["file"]] = (value["path"], (value["text"] or "").split("\n"))
                elif "place" in value:
                    places[value["place"]] = value
                elif "kernel" in value:
                    witnesses[value["launch"]] = Witness(value)
                elif "cluster" in value:
                    cluster = witnesses[value["launch"]]
                    cluster.shared_bytes = value["shared_bytes"]
                elif "variable" in value:
                    cluster.variables[value["variable"].split("::")[-1]] = (value["offset"], value["bytes"])
            elif line.startswith('["mbarrier"') and '"init"' in line:
                event = json.loads(line)
                place = places.get(event[10])
                texts = [files[place[file]][1][place[line] - 1] if place and place[file] in files else ""
                         for file, line in (("file", "line"), ("inner_file", "inner_line"))]
                cluster.barriers.setdefault(event[2] & 0xffffff, set()).add(tuple(texts))
            elif line.startswith('["copy"'):
                event = json.loads(line)
                cluster.pieces |= {(address & 0xffffff, length) for address, length in event[10] + event[11]}
    return [path for path, _ in files.values()], witnesses.values()


def main():
    try:
        files, witnesses = read(sys.argv[1])
    except ValueError:
        return  # cut off: the page says so
    sources = [Source(path) for path in files]
    lines = [line for witness in witnesses for line in lines_of(witness, sources)]
    with open(sys.argv[1], "a", encoding="utf-8") as recording:
        for line in lines:
            recording.write(json.dumps(line) + "\n")


if len(sys.argv) != 2:
    sys.exit("usage: members.py RECORDING")
main()
