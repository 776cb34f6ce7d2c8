/* source.js: the source text, with the warps beside the lines where they are. Instructions without a
 * source line appear as a list of PTX. */

/* The file of a place: its source, or PTX. */
const PTX = -2;
/* A choice beside the files: follow the event, into functions. */
const INNER = -3;

/* The place of the current event, or of the copy or wgmma that it belongs to, or else of its warp. */
function currentPlace() {
  const { model, view } = app;
  const event = model.events[view.event];
  const warp = event ? Math.max(0, warpOf(model, event)) : 0;
  const place = event && placeOf(model, model.events[begunBy(model, event, view.event)]);
  if (place) return withLine(model, place, warp, view.event);
  for (const group of warpPlaces(model, warp, view.event)) return withLine(model, group.place, warp, view.event);
  const first = model.events.find((each) => each[0] === "step");
  return first ? placeOf(model, first) : null;
}

/* The event that issued what event n belongs to, or n. */
function begunBy(model, event, n) {
  if (event[0] === "wgmma_done") return model.wgmmas[event[2]].begin;
  const copy = copyOf(model, event) || (isBarrier(event) && event[11] >= 0 ? model.copies[event[11]] : null);
  return copy ? copy.begin : n;
}

/* Some instructions of a program with lines have none, as those that load a kernel's parameters: the last line of the warp before. */
function withLine(model, place, warp, n) {
  const { steps } = model.warps[warp];
  const isMissing = place.file < 0 && kernelFile(model.recording) >= 0;
  for (let i = countUpTo(steps, n) - 1; isMissing && i >= 0; i--) {
    const before = placeOf(model, model.events[steps[i]]);
    if (before.file >= 0) return before;
  }
  return place;
}

/* [{text, number}]: the lines of a file. For PTX: the instructions that were executed, in their order. */
function linesOf(file) {
  if (file !== PTX) {
    const source = app.recording.files[file];
    if (!source) return [];
    if (source.text === null)
      return [{ text: `${source.path} could not be read when this was recorded`, number: 1 }];
    return source.text.replace(/\n$/, "").split("\n").map((text, i) => ({ text, number: i + 1 }));
  }
  const lines = new Map();
  for (const place of app.recording.places) if (place && place.file < 0) lines.set(place.ptx_line, place.text);
  return [...lines].sort((a, b) => a[0] - b[0]).map(([number, text]) => ({ text, number }));
}

/* A list is made once for each file, and shown again when the reader comes back to it. */
function openFile(file) {
  for (const number of app.marked) markLine(number, null, false, null); // the list may be shown again later
  if (!app.lists.has(file)) app.lists.set(file, listOfLines(linesOf(file), linesOfOtherSide(file)));
  app.sourceFile = file;
  const { list, lineOf } = app.lists.get(file);
  byId("source").replaceChildren(list);
  app.lineOf = lineOf;
}

/* Where a header lies is no fix, and neither is a comment. */
const isCode = (text) => !/^\s*(#include|\/\/|$)/.test(text);

/* By the longest common sequence: [{at, after, gone, come}], the numbers of lines that only `mine` or only `others` has, and of the
 * last lines before them, in both. */
function differences(mine, others) {
  const longest = Array.from({ length: mine.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = mine.length - 1; i >= 0; i--)
    for (let j = others.length - 1; j >= 0; j--)
      longest[i][j] = mine[i] === others[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const hunks = [];
  for (let i = 0, j = 0; i < mine.length || j < others.length;) {
    if (i < mine.length && mine[i] === others[j]) {
      i++, j++;
      continue;
    }
    const hunk = { at: i, after: j, gone: [], come: [] };
    while ((i < mine.length || j < others.length) && mine[i] !== others[j])
      if (j === others.length || (i < mine.length && longest[i + 1][j] >= longest[i][j + 1])) hunk.gone.push(++i);
      else hunk.come.push(++j);
    hunks.push(hunk);
  }
  return hunks.map(({ gone, come, ...where }) => ({ ...where, gone: gone.filter((number) => isCode(mine[number - 1])),
    come: come.filter((number) => isCode(others[number - 1])) })).filter(({ gone, come }) => gone.length || come.length);
}

/* lineOf: number of the line -> its element. */
function listOfLines(lines, others) {
  const hunks = others.length ? differences(lines.map(({ text }) => text.trim()), others) : [];
  const missing = new Set(hunks.flatMap(({ gone }) => gone));
  const isCompared = isComparison();
  const isOther = isCompared && 2 * missing.size > lines.filter(({ text }) => isCode(text)).length; // all of it would be underlined
  const found = new Map(isCompared ? [] : hunks.filter(({ come }) => come.length).map(({ at, gone, come }) => [at + gone.length, come]));
  const list = tag("ol", isCompared ? "compared" : app.view.side ? "fix" : "");
  const lineOf = new Map();
  for (const { text, number } of lines) {
    const code = tag("code", "", text.trim() || " ");
    code.style.setProperty("--indent", `${text.search(/\S|$/)}ch`);
    const differs = missing.has(number) && !isOther;
    code.classList.toggle("differs", differs);
    if (found.has(number) && !app.view.side)
      code.dataset.note = `the fix${differs ? "" : " adds"}: ${found.get(number).map((theirs) => others[theirs - 1]).join(" ")}`;
    else if (differs && !isCompared) code.dataset.note = app.view.side ? "the fix" : "not in the fix";
    const line = tag("li", "", tag("span", "warps"), tag("span", "number", number), code);
    list.append(line);
    lineOf.set(number, line);
  }
  return { list, lineOf };
}

/* Where a place is in a file: its line there, or 0. */
function lineIn(place, file) {
  if (file === PTX) return place.file < 0 ? place.ptx_line : 0;
  return place.file === file ? place.line : 0;
}

function showSource() {
  const place = currentPlace();
  const file = app.chosenFile === null ? fileOf(place) : app.chosenFile;
  byId("file").value = app.chosenFile === null ? (app.view.inner ? INNER : -1) : file;
  if (file !== app.sourceFile) openFile(file);
  const marks = textsOfMarks(file);
  const current = currentLine(place, file);
  const partners = partnersIn(file, current);
  for (const number of new Set([...app.marked, ...marks.keys(), ...partners.keys(), current]))
    markLine(number, marks.get(number), number === current, partners.get(number));
  app.marked = [...marks.keys(), ...partners.keys(), current];
  byId("instruction").textContent = executed(app.view.event);
  byId("marks").textContent = explainMarks();
  const found = app.lineOf.get(current);
  if (found && current !== app.scrolledTo) {
    // Then all are in sight, if they can be.
    if (partners.size) for (const code of byId("source").querySelectorAll("[data-note]")) scrollToLine(code.parentNode);
    for (const number of partners.keys()) scrollToLine(app.lineOf.get(number));
    scrollToLine(found);
  }
  app.scrolledTo = current;
}

/* Lines of the file that the moment has to do with, beside its own: number -> what was done there. Of a report its two sides, and what
 * defines a constant of the second; of a thread's read, the line whose bytes it reads. */
function partnersIn(file, current) {
  const { model, view } = app;
  const event = model.events[view.event];
  const partners = new Map();
  const add = (place, words) => {
    if (place && place.file === file && file >= 0 && (place.line !== current || /^[①②]:/.test(words)) && app.lineOf.has(place.line))
      partners.set(place.line, words);
  };
  const picture = pictureShown();
  const { a, b } = picture ? picture.report : {};
  if (picture && (isFinding(event || []) || [a, b].some((side) => side && side.event === view.event))) {
    if (b && b.defined) add(b.defined.place, `${letterOf(picture.report, b)}: ${b.defined.name} is defined here`);
    for (const side of [a, b]) if (side) add(side.place, `${letterOf(picture.report, side)}: ${side.did}`);
  } else if (event && event[0] === "shared" && event[5] === "read") {
    const byte = byteAt(model, event[8][0][0], view.event);
    if (byte) add(outerPlace(placeOfAuthor(model.events[byte.event][2], byte.event)), "written here");
  }
  return partners;
}

function placeOfAuthor(author, n) {
  const { model } = app;
  const number = Number(author.slice(1));
  if (author[0] === "c") return placeOf(model, model.events[model.copies[number].begin]);
  return author[0] === "w" ? (warpPlaces(model, number, n)[0] || {}).place : null;
}

function fileOf(place) {
  if (!place) return -1;
  if (place.file < 0) return PTX;
  return app.view.inner && place.inner_file >= 0 ? place.inner_file : place.file;
}

function currentLine(place, file) {
  if (!place) return 0;
  const inner = place.inner_file === file && file >= 0 ? place.inner_line : 0;
  return app.view.inner ? inner || lineIn(place, file) : lineIn(place, file) || inner;
}

const LEAST_IN_SIGHT = 60;

/* Lines wrap, so only the browser knows where one is. Where the window ends before the box does, what is below is out of sight. */
function scrollToLine(line) {
  const box = byId("source");
  const top = line.offsetTop;
  const sight = Math.min(box.clientHeight, Math.max(LEAST_IN_SIGHT, innerHeight - box.getBoundingClientRect().top));
  if (top < box.scrollTop + 40 || top > box.scrollTop + sight - 60) box.scrollTop = top - sight / 2;
}

/* The instruction that is event n; none where no thread does anything, as when a copy lands. A wgmma names up to 128
 * registers. */
function executed(n) {
  const place = n >= 0 && placeOf(app.model, app.model.events[n]);
  return place ? place.text.replace(/\{([^{},]*),[^{}]{60,}\}/g,
    (list, first) => `{${first}, ... ${list.split(",").length} registers}`) : "";
}

/* Which warps are at which line: number of the line -> [{number, state}]. */
function warpsByLine(file) {
  const { model, view } = app;
  const byLine = new Map();
  for (const warp of model.warps) {
    const ended = exitedLanes(model, warp.number, view.event);
    for (const group of warpPlaces(model, warp.number, view.event)) {
      if (!(group.mask & ~ended)) continue;
      const waits = warpWaits(model, warp.number, view.event).filter((wait) => wait.mask & group.mask);
      const isDone = waits.every((wait) => isReady(model, warp.number, wait, view.event));
      const mark = { number: warp.number, state: !waits.length ? "running" : isDone ? "ready" : "waiting" };
      const place = file === PTX ? group.place : withLine(model, group.place, warp.number, view.event);
      const outer = lineIn(place, file);
      if (outer) listOf(byLine, outer).push(mark);
      if (file >= 0 && place.inner_file === file && place.inner_line !== outer) listOf(byLine, place.inner_line).push(mark);
    }
  }
  return byLine;
}

/* Number of the line -> {text, title}: "w1 w0› w2-3‖" for warp 1 of the block shown running, 0 ready, and 2 and
 * 3 waiting; "+4" counts the warps of other blocks. */
function textsOfMarks(file) {
  const perBlock = app.model.cluster.warps_per_block;
  const marks = new Map();
  for (const [number, warps] of warpsByLine(file)) {
    const here = warps.filter((warp) => Math.floor(warp.number / perBlock) === blockOfThreads());
    const [running, ready, waiting] = ["running", "ready", "waiting"].map((state) =>
      numberRuns([...new Set(here.filter((warp) => warp.state === state).map((warp) => warp.number % perBlock))]));
    const others = new Set(warps.map((warp) => warp.number)).size - new Set(here.map((warp) => warp.number)).size;
    marks.set(number, {
      text: [running && `w${running}`, ready && `w${ready}›`, waiting && `w${waiting}‖`, others && `+${others}`].filter(Boolean).join(" "),
      title: [running && `running: warps ${running}`, ready && `ready, not run yet: warps ${ready}`,
        waiting && `waiting: warps ${waiting}`, others && `${plural(others, "warp")} of other blocks`].filter(Boolean).join("; "),
    });
  }
  return marks;
}

/* What these marks mean, in this recording. */
function explainMarks() {
  const underlined = byId("source").querySelector(".compared .differs") ? `, underlined: not in ${nameOfSide(1 - app.view.side)}` : "";
  const states = `‖: waits${timeUnit(app.model) === "clock" ? "" : ", ›: ready, not run yet"}${underlined}`;
  return app.model.blocks > 1 ? `w0: warp 0 of block ${blockOfThreads()}, ${states}, +4: of other blocks` : `w0: warp 0, ${states}`;
}

function markLine(number, mark, current, partner) {
  const line = app.lineOf.get(number);
  if (!line) return;
  const name = (mark ? "here" : "") + (current ? " current" : "") +
    (!partner ? "" : ` partner${/^[①②]:/.test(partner) ? " side" : ""}`);
  if (partner) line.dataset.partner = partner;
  if (line.className !== name) line.className = name;
  const text = mark ? mark.text : "";
  if (line.firstChild.textContent !== text) line.firstChild.textContent = text;
  line.firstChild.title = mark ? mark.title : "";
}
