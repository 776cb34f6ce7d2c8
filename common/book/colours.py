"""colours.py: CUDA C as HTML, with comments, strings, keywords, numbers and the preprocessor marked."""
import html
import re

KEYWORDS = """alignas asm break case char const continue default do double else enum extern float for goto if inline int
int2 int3 int32_t int64_t long return short signed sizeof static struct switch template typedef uint16_t uint32_t uint64_t
uint8_t union unsigned using void volatile while bool true false dim3 __cluster_dims__ __constant__ __device__
__forceinline__ __global__ __grid_constant__ __host__ __launch_bounds__ __restrict__ __shared__""".split()
TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+')"
    r"|(?P<directive>^[ \t]*#[^\n]*)"
    r"|(?P<number>\b\d[\w.]*)"
    r"|(?P<keyword>\b(?:" + "|".join(KEYWORDS) + r")\b)"
    r"|(?P<name>\w+)", re.DOTALL | re.MULTILINE)


def c(text):
    """The text with spans around its tokens; each line's spans end in that line."""
    out, at = [], 0
    for token in TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "name":
            continue
        out.append(html.escape(text[at:token.start()], False))
        out.append("\n".join(f'<span class="{kind}">{html.escape(line, False)}</span>' for line in token[0].split("\n")))
        at = token.end()
    return "".join(out) + html.escape(text[at:], False)
