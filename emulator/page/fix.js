/* fix.js: what the fix of a mistake changes: its lines beside those of the mistake, and what it does where the mistake was reported. */

/* [{at, gone, come}]: lines of the mistake that the fix has not, and lines that only the fix has. `at`: the last line before them. */
function fixHunks() {
  if (!app.hunks) {
    const [mine, theirs] = app.recordings.map((recording) => linesOfFile(recording, kernelFile(recording)));
    app.hunks = theirs && !isComparison() ? differences(mine, theirs) : [];
  }
  return app.hunks;
}

const MOST_DIFFERENT = 8;

function diffTable() {
  const hunks = fixHunks();
  if (!hunks.length) return [];
  const [mine, theirs] = app.recordings.map((recording) => linesOfFile(recording, kernelFile(recording)));
  const cell = (lines, number, className) => tag("td", number ? className : "", ...(number ? [tag("i", "", String(number)),
    className === "come" ? fixButton(lines[number - 1], number) : tag("code", "", lines[number - 1] || " ")] : []));
  const rows = [];
  for (const { at, after, gone, come } of hunks) {
    const isShown = rows.length && rows[rows.length - 1][0] === at;
    if (!isShown && (mine[at - 1] || "").trim()) rows.push([at, after, ""]);
    for (let i = 0; i < Math.max(gone.length, come.length); i++) rows.push([gone[i], come[i], "changed"]);
    const behind = (gone[gone.length - 1] || at) + 1;
    if ((!gone.length || !come.length) && (mine[behind - 1] || "").trim() && !/\w/.test(mine[at - 1] || ""))
      rows.push([behind, (come[come.length - 1] || after) + 1, ""]);
  }
  const shown = rows.slice(0, MOST_DIFFERENT);
  const table = tag("table", "diff", tag("tr", "", tag("th", "", "the mistake"), tag("th", "", "the fix")),
    ...shown.map(([left, right, changed]) => tag("tr", changed, cell(mine, left, changed && "gone"),
      cell(theirs, right, changed && "come"))));
  if (rows.length > shown.length) table.append(tag("caption", "", `and ${rows.length - shown.length} more lines, marked in the source`));
  return [table];
}

/* Goes to where the line of the fix has done its work. */
function fixButton(text, number) {
  const made = button("", () => {
    showSide(1);
    const file = kernelFile(app.recording);
    const { added } = pictureShown() || { added: -1 };
    const isHere = added >= 0 && lineIn(placeOf(app.model, app.model.events[added]), file) === number;
    const at = isHere ? added : workOfLines(app.model, file, [number]);
    app.chosenFile = at < 0 ? file : null;
    if (at >= 0) standAt(at);
    showNow();
    scrollToLine(app.lineOf.get(number));
  }, tag("code", "", text));
  made.title = "to this line of the fix";
  return made;
}

/* ---- The picture of a report, in the fix ---- */

const LONGEST_WORDS = 32; // fit between the sides

/* The same two sides in the fix, and what its lines do between them. */
function pictureOfFix(report, from, model) {
  const isOrder = isOfOrder(report);
  const twin = (side) => {
    const warp = side && side.event >= 0 ? warpOf(from, from.events[side.event]) : -1;
    const changed = side && side.place ? fixHunks().find(({ gone }) => gone.includes(side.place.line)) : null;
    const work = changed && side.place.file === kernelFile(from.recording)
      ? workOfLines(model, kernelFile(model.recording), changed.come) : -1;
    const event = work >= 0 ? work : model.warps[warp] ? samePlace(from, side.event, model, warp) : -1;
    const place = event >= 0 ? outerPlace(placeOf(model, model.events[event])) : null;
    return side && { event, place, did: event < 0 ? "the fix does nothing of the kind" : isOrder ? side.did : doneInFix(model, event),
      defined: place && side.defined ? definitionIn(model.recording, place) : null };
  };
  const [a, b] = [twin(report.a), twin(report.b)];
  const lines = fixHunks().flatMap(({ come }) => come);
  const [first, last] = b ? [a.event, b.event].sort((i, k) => i - k) : [-1, -1];
  const at = first < 0 ? -1 : workOfLines(model, kernelFile(model.recording), lines, first, last);
  const between = at >= 0 && isOrder ? whatOrders(model, at, lines) : "with the fix";
  return { report: { ...report, a, b, between, heading: at >= 0 && isOrder ? between : linesOfFix() }, added: at };
}

/* The line of the fix that does it, and the others without which it would not. */
function whatOrders(model, at, lines) {
  const line = lineText(model, at).replace(/;$/, "");
  if (lines.length > 1) return `lines ${lines.slice(0, -1).join(", ")} and ${lines[lines.length - 1]} order these two`;
  return `${line.length > LONGEST_WORDS ? `line ${lines[0]}` : line} orders these two`;
}

/* What happens there in the fix, in numbers of its own run. */
function doneInFix(model, n) {
  const event = model.events[n];
  if (event[0] === "wait") {
    const { end } = waitAt(model, event, n);
    const whom = event[5].length ? barrierName(model, event[5][1]) : opcodeOf(model, event);
    return `${warpName(model, event[2])} waits for ${whom}${end === Infinity ? "" : `, and goes on after ${clocksBetween(model, n, end)}`}`;
  }
  if (isBarrier(event) && event[3] === "init")
    return `${warpName(model, event[8])} initialises ${barrierName(model, event[2])} for ${plural(event[6], "arrival")}`;
  if (!isBarrier(event) || !announces(model, event, n)) return describeEvent(model, n);
  const barrier = model.barriers.get(event[2]);
  const { announced, brought } = bytesOfPhase(model, barrier, event[4]);
  const came = barrier.changes.some((k) => model.events[k][4] > event[4]) ? "all" : brought.toLocaleString("en-US");
  return `${barrierName(model, event[2])} is told to expect ${plural(announced, "byte")}, and ${came} came`;
}

/* The lines that the fix has, or leaves out, in a few words. */
function linesOfFix() {
  const [mine, theirs] = app.recordings.map((recording) => linesOfFile(recording, kernelFile(recording)));
  const [{ gone, come } = { gone: [], come: [] }, ...more] = fixHunks();
  const [lost, made] = [statementsOf(mine, gone), statementsOf(theirs, come)];
  const line = made.length ? made[0] : lost.length ? `without ${lost[0]}` : "";
  const others = Math.max(lost.length, made.length) - 1 + more.length;
  return `${line.replace(/[;,]$/, "")}${others > 0 ? `, and ${plural(others, "more change")}` : ""}`;
}

/* Lines without their comments, where a statement that is broken over several is one. */
const statementsOf = (lines, numbers) => numbers.reduce((found, number, i) => {
  const line = lines[number - 1].replace(/\s*\/\/.*/, "");
  const isMore = i && number === numbers[i - 1] + 1 && !/[;{},]$/.test(found[found.length - 1]);
  return isMore ? [...found.slice(0, -1), `${found[found.length - 1]} ${line}`] : [...found, line];
}, []);

/* Where a run of a mistake first comes to what the fix changes: its line, else the next one in the source that does anything. -1: it
 * never does. */
function momentOfFix(model) {
  const file = kernelFile(model.recording);
  const lines = model.events.map((event) => (placeOf(model, event) ? lineIn(placeOf(model, event), file) : 0));
  for (const { at, gone } of fixHunks()) {
    const next = lines.filter((line) => line >= (gone[0] || at)).sort((a, b) => a - b)[0];
    if (next) return lines.indexOf(next);
  }
  return -1;
}
