#!/usr/bin/env bats
# The book: every README as a page, every program to step through, and links between them.
# builds: lessons common/book/% tests/joined/02_% tests/joined/03_%

load helpers

render() { python3 -B -c 'import sys; sys.path.insert(0, "common/book"); import markdown
print(markdown.Renderer(lambda target: target.replace("README.md", "index.html")).render(sys.stdin.read()))'; }

# The recordings of a page, which holds them packed.
unpacked() { # PAGE
  python3 - "$1" <<'PYTHON'
import base64, gzip, re, sys
for data in re.findall(r'data-packed="gzip">\n(\S+)\n</script>', open(sys.argv[1], encoding="utf-8").read()):
    print(gzip.decompress(base64.b64decode(data)).decode())
PYTHON
}

@test "book: every link leads somewhere, and nothing is loaded from a network" {
  export GITHUB_SERVER_URL=https://git.example GITHUB_REPOSITORY=some/body
  # record.bats tests what each program's page is made of; a page for each takes half a minute.
  run -0 python3 -B common/book/book.py "$BATS_TEST_TMPDIR/book" 0[1-6]_*/*.cu 02_tma_load/pitfalls/too_many_bytes.cu \
    03_tma_store/pitfalls/missing_proxy_fence.cu \
    07_pipelined_gemm/library/bench_shapes.cu 07_pipelined_gemm/{tiled,serial,overlapped_epilogue}.cu
  [[ $output == *"/book/index.html: "*" documents, "*" programs to step through, "* ]]
  # Programs that need cuBLAS are left out where the toolkit lacks it; all others have a page.
  for source in $(sed -n 's/^  no page for \(.*\): not built$/\1/p' <<<"$output"); do
    grep -q '^// link: ' "$source"
  done
  run -0 python3 -B tests/check_links.py "$BATS_TEST_TMPDIR/book"
  for source in [0-9][0-9]_*/{,*/}README.md 02_tma_load/tma_load.cu 02_tma_load/pitfalls/too_many_bytes.cu; do
    page=$BATS_TEST_TMPDIR/book/${source%.cu}.html
    [ -s "${page/README.md.html/index.html}" ]
  done
  # The workflow knows where the repository is.
  grep -qF 'git clone --depth 1 https://git.example/some/body /tmp/tma' "$BATS_TEST_TMPDIR/book/emulator/YOUR_KERNEL.html"
  # A folder without a README is a list of its files.
  grep -q 'href="gemm_types.cuh.html"' "$BATS_TEST_TMPDIR/book/07_pipelined_gemm/library/index.html"
  grep -q 'href="pitfalls/too_many_bytes.html"' "$BATS_TEST_TMPDIR/book/02_tma_load/index.html"
  # A chapter's page names all chapters, lists its own headings, and leads to the page of each listing.
  page=$BATS_TEST_TMPDIR/book/02_tma_load/index.html
  grep -q 'aria-current="page">02 Loading a tile with one thread</a>' "$page"
  grep -q '<li class="level2"><a href="#the-barrier">The barrier</a></li>' "$page"
  grep -q '<p class="step"><a href="first_load.html">Step through this program</a></p>' "$page"
  # A pitfall's page has the fix, too.
  page=$BATS_TEST_TMPDIR/book/02_tma_load/pitfalls/too_many_bytes.html
  run grep -c 'class="recording" data-title="too_many_bytes" data-packed="gzip">' "$page"
  [ "$output" -eq 2 ]
  unpacked "$page" | grep -q '^{"launch": 0, "kernel": "load", '
  grep -q '<header><a href="../../index.html">Contents</a> <a href="../../02_tma_load/index.html">' "$page"
  # A rung's page has the rung before, and the whole of both.
  titles() { grep -o 'class="recording" data-title="[^"]*"' "$BATS_TEST_TMPDIR/book/07_pipelined_gemm/$1.html" | cut -d'"' -f4 | xargs; }
  [ "$(titles tiled), $(titles serial), $(titles overlapped_epilogue)" = "tiled, tiled serial, tma_epilogue overlapped_epilogue" ]
  run -1 grep '^{"stopped"' <(unpacked "$BATS_TEST_TMPDIR/book/07_pipelined_gemm/overlapped_epilogue.html")
  # Where to begin, a page for each question and word, and how to go on from page to page.
  cd "$BATS_TEST_TMPDIR/book"
  grep -q '<h2 id="where-to-begin">Where to begin: 60 minutes</h2>' index.html
  grep -q '<li><a href="02_tma_load/first_load.html">first_load</a> (15 minutes): ' index.html
  grep -q '<h1 id="what-does-a-barrier-need-for-a-tma-copy">' questions/what-does-a-barrier-need-for-a-tma-copy.html
  grep -q 'Run: <a href="../02_tma_load/first_load.html">first_load</a>' questions/what-does-a-barrier-need-for-a-tma-copy.html
  # The section that answers it stands there, too.
  grep -q '<h2 id="02-loading-a-tile-with-one-thread-the-smallest-program">' questions/what-does-a-barrier-need-for-a-tma-copy.html
  grep -q '<a class="prev" rel="prev" href="../questions/which-fence-comes-before-a-tma-store.html">' questions/what-does-a-barrier-need-for-a-tma-copy.html
  grep -q '<a class="next" rel="next" href="../03_tma_store/index.html">' 02_tma_load/MORE.html
  grep -q 'href="../glossary/tile.html"' 02_tma_load/index.html
  [ "$(ls questions | wc -l)" -eq "$(grep -c '<td><a href=.questions/' QUESTIONS.html)" ]
  [ "$(ls glossary | wc -l)" -eq "$(grep -c '<h3 [^>]*><a href=.glossary/' GLOSSARY.html)" ]
  [ -z "$(find . -size +4000000c)" ]
}

@test "book: pages with something to turn, from a recording of every choice" {
  run -0 python3 -B common/book/book.py "$BATS_TEST_TMPDIR/book" common/book/turn_tile.cu common/book/turn_ring.cu
  pages=$BATS_TEST_TMPDIR/book/common/book
  [ "$(unpacked "$pages/turn_tile.html" | grep -c '^{"choice"')" -eq 36 ]
  [ "$(unpacked "$pages/turn_tile.html" | grep -c '^{"choice".*"refused": ')" -eq 9 ]
  [ "$(unpacked "$pages/turn_ring.html" | grep -c '^{"choice".*"launch": ')" -eq 12 ]
  # The chapters lead there, and back.
  grep -q 'href="../common/book/turn_tile.html"' "$BATS_TEST_TMPDIR/book/06_swizzle_3d/index.html"
  grep -q 'href="../common/book/turn_ring.html"' "$BATS_TEST_TMPDIR/book/07_pipelined_gemm/index.html"
  grep -q '<header><a href="../../index.html">Contents</a> <a href="../../06_swizzle_3d/index.html">' "$pages/turn_tile.html"
  browser=$(command -v chromium) || skip "no chromium"
  turned() { # PAGE: what the script on standard input leaves in `said`
    { cat <<'SCRIPT'
<script>
app.begun.then(() => {
const said = [];
const select = (name) => document.querySelector(`#choices [data-name="${name}"]`);
const turn = (name, value) => {
  select(name).value = value;
  select(name).dispatchEvent(new Event("change"));
  showNow();
};
SCRIPT
      cat
      cat <<'SCRIPT'
document.body.append(Object.assign(document.createElement("pre"), { id: "said", textContent: said.join("|") }));
});
</script>
SCRIPT
    } >"$BATS_TEST_TMPDIR/script"
    sed "/^<script src=/r $BATS_TEST_TMPDIR/script" "$pages/$1.html" >"$pages/turned.html"
    "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=20000 --user-data-dir="$BATS_TEST_TMPDIR/profile" \
      --dump-dom "file://$pages/turned.html" 2>/dev/null | sed -n 's/.*<pre id="said">\(.*\)<\/pre>.*/\1/p'
  }
  run turned turn_tile <<'SCRIPT'
const swizzle = () => said.push(...[...select("swizzle").options].map((option) => option.textContent));
swizzle();
turn("box", "16 columns");
swizzle();
said.push(app.moments.find((each) => each.at === app.view.event).name);
turn("swizzle", "32 bytes");
turn("box", "64 columns");
said.push(byId("refused").hidden, byId("refused").textContent.slice(0, 34));
SCRIPT
  # A row of 128 bytes, then one of 32: the figures of the chapter.
  [[ $output == "none: read in 32 passes|32 bytes: refused|64 bytes: refused|128 bytes: read in 4 passes|"* ]]
  [[ $output == *"|none: read in 8 passes|32 bytes: read in 4 passes|64 bytes: read in 4 passes|128 bytes: read in 4 passes|landed|"* ]]
  [[ $output == *"|landed|false|Refused: swizzle = 32B spans 32 by" ]]
  # More stages take less time, until the copies are no longer waited for.
  run turned turn_ring <<'SCRIPT'
said.push(...[...select("stages").options].map((option) => option.textContent.split(": ")[1].replace(/[^0-9]/g, "")));
turn("stages", "4");
said.push(app.model.barriers.size, app.moments.find((each) => each.at === app.view.event).name);
SCRIPT
  [[ $output =~ ^([0-9]+)\|([0-9]+)\|([0-9]+)\|([0-9]+)\|8\|landed$ ]]
  [ "${BASH_REMATCH[1]}" -gt "${BASH_REMATCH[2]}" ]
  [ "${BASH_REMATCH[2]}" -gt "${BASH_REMATCH[3]}" ]
}

@test "book: the search finds a section by its words, on every page and without a server" {
  python3 -B common/book/book.py "$BATS_TEST_TMPDIR/book" 02_tma_load/first_load.cu
  python3 - "$BATS_TEST_TMPDIR/book" <<'PYTHON'
import json, sys
folder = sys.argv[1]
text = open(folder + "/sections.js", encoding="utf-8").read()
sections = json.loads(text.removeprefix("const SECTIONS = ").removesuffix(";\n"))
page, anchor, title, words = next(each for each in sections if each[2] == "The smallest program" and "first_load" in each[3])
assert (page, anchor) == ("02_tma_load/index.html", "the-smallest-program"), (page, anchor)
assert 'id="the-smallest-program"' in open(f"{folder}/{page}", encoding="utf-8").read()
assert "mbarrier_init(&barrier, 1);" in words, words
PYTHON
  command -v chromium || skip "no chromium"
  cat >>"$BATS_TEST_TMPDIR/book/search.js" <<'SCRIPT'
input.value = "smallest first_load";
input.dispatchEvent(new Event("input"));
SCRIPT
  run timeout 60 chromium --headless --no-sandbox --disable-gpu --dump-dom "file://$BATS_TEST_TMPDIR/book/GLOSSARY.html"
  [[ $output == *'<ol><li><a href="02_tma_load/index.html#the-smallest-program">'* ]]
}

@test "book: CUDA C with its comments, strings, keywords and numbers marked, and nothing lost" {
  run -0 python3 -B -c 'import sys; sys.path.insert(0, "common/book"); import colours, glob, html, re
for path in glob.glob("0*/*.cu") + glob.glob("0*/*/*.cu"):
    text = open(path, encoding="utf-8").read()
    assert html.unescape(re.sub("<[^>]*>", "", colours.c(text))) == text, path
print(colours.c("#define A 1\nint x = 0x10; // a < b\nputs(\"//no\");"))'
  [[ $output == *'<span class="directive">#define A 1</span>'* ]]
  [[ $output == *'<span class="keyword">int</span> x = <span class="number">0x10</span>; <span class="comment">// a &lt; b</span>'* ]]
  [[ $output == *'puts(<span class="string">"//no"</span>);'* ]]
}

@test "book: a link that leads nowhere and a page from a network are found" {
  mkdir "$BATS_TEST_TMPDIR/book"
  printf '<a href="gone.html">x</a><a href="#none">y</a><img src="https://example.org/x.png" alt="x">' \
    >"$BATS_TEST_TMPDIR/book/index.html"
  run -1 python3 -B tests/check_links.py "$BATS_TEST_TMPDIR/book"
  [[ $output == *"links to gone.html, which is not there"* ]]
  [[ $output == *"links to #none, which has no such heading"* ]]
  [[ $output == *"loads https://example.org/x.png"* ]]
}

@test "book: Markdown as the READMEs use it" {
  run -0 render <<'MARKDOWN'
# A *b* `c`
words **bold** and `a < b *c*` and [a `link`](README.md#x)
on two lines
<!-- begin: x -->
![alt](p.svg)

a tile of 64 x
64. Most

- one
  more
- two

  ```
  code in a list
  ```
1. first

| a | b |
|---|---|
| `x|y` | \| 5 * 3 * 2 |
| | **z** |
<details>
<summary>more of *it*</summary>

| n |
|---:|
| 12 |

</details>
```
<&> *not* emphasis
```
> quoted
## A b c
MARKDOWN
  [[ $output == *'<h1 id="a-b-c">A <em>b</em> <code>c</code></h1>'* ]]
  [[ $output == *'<strong>bold</strong> and <code>a &lt; b *c*</code> and <a href="index.html#x">a <code>link</code></a>'* ]]
  [[ $output == *'<img src="p.svg" alt="alt">'* ]]
  [[ $output == *$'<p>a tile of 64 x\n64. Most</p>'* ]]
  [[ $output == *$'<li>one\nmore</li>'* ]]
  [[ $output == *'<pre tabindex="0"><code>code in a list</code></pre></li></ul>'* ]]
  [[ $output == *'<ol><li>first</li></ol>'* ]]
  [[ $output == *'<th>a</th><th>b</th>'* ]]
  [[ $output == *'<td><code>x|y</code></td><td>| 5 * 3 * 2</td>'* ]]
  [[ $output == *'<td></td><td><strong>z</strong></td>'* ]]
  [[ $output == *$'<details>\n<summary>more of <em>it</em></summary>\n'* ]]
  [[ $output == *'<td class="number">12</td>'* ]]
  [[ $output == *'&lt;&amp;&gt; *not* emphasis'* ]]
  [[ $output == *'<blockquote><p>quoted</p></blockquote>'* ]]
  [[ $output == *'<h2 id="a-b-c-1">A b c</h2>'* ]]
  [[ $output != *"begin: x"* ]]
}
