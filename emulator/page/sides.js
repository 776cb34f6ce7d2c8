/* sides.js: the recordings of the page: one, or those of a mistake and of its fix, between which the reader switches and
 * stays at the same moment. */

/* Shows this recording from now on; openCluster comes next. */
function openSide(side) {
  app.view.side = side;
  app.recording = app.recordings[side];
  const { recording } = app;
  byId("title").textContent = recording.title;
  byId("cluster").replaceChildren(...recording.clusters.map((cluster, i) => {
    const launch = recording.launches[cluster.launch];
    return new Option(`${cluster.launch}: ${launch.kernel}, block (${cluster.blocks[0].join(",")})`, i);
  }));
  const ptx = recording.places.some((place) => place && place.file < 0);
  byId("file").replaceChildren(
    new Option("follow the event", -1), new Option("follow into functions", INNER), ...(ptx ? [new Option("PTX", PTX)] : []),
    ...recording.files.map((file, i) => new Option(file.path.replace(/^.*\//, ""), i)));
  const purpose = purposeOf(recording);
  byId("purpose").textContent = side ? purpose.replace(/^pitfall ([^:]+): ([^;]*).*/, "the fix of $1. The mistake: $2") : purpose;
  byId("stopped").hidden = !recording.stopped;
  byId("stopped").textContent = recording.stopped || "";
  listChoices();
  byId("sides").hidden = app.recordings.length === 1;
  byId("mistake").setAttribute("aria-pressed", String(side === 0));
  byId("fix").setAttribute("aria-pressed", String(side === 1));
  app.lists.clear();
  app.chosenFile = null;
  app.sourceFile = null;
}

/* What the program is for: the comment that the kernel's file begins with, up to the first empty line. */
function purposeOf(recording) {
  const { text } = recording.files[kernelFile(recording)] || {};
  const [comment] = (text || "").match(/^(\/\/ .*\n)*/);
  return comment.replace(/^\/\/ /, "").replace(/\n\/\/ {3}/g, "; ").replace(/\n(\/\/ )?/g, " ").trim();
}

function showSide(side) {
  if (side === app.view.side || side >= app.recordings.length) return;
  const { launch, number } = app.model.cluster;
  openSide(side);
  showCluster(Math.max(0, app.recording.clusters.findIndex((cluster) => cluster.launch === launch && cluster.number === number)));
}

/* Another run, at the same moment. */
function showCluster(index) {
  const { model: before, view: { event } } = app;
  openCluster(index);
  app.view.event = sameMoment(before, event, app.model);
  showFix();
  show();
}

/* The moment of one run that is event n of another: the key moment of that name, else a place in the source, else the
 * same share of all events. */
function sameMoment(from, n, to) {
  if (n < 0) return n;
  const named = keyMoments(from).filter(({ at }) => at === n).map(({ name }) => name);
  const { chosenMoment } = app; // an event may be more than one of them
  if (named.includes("finding") && hangs(from)) named.push("wait"); // where the fix waits, too, and goes on
  const same = keyMoments(to).filter(({ name }) => named.includes(name));
  if (same.length) return (same.find(({ name }) => chosenMoment && chosenMoment.name === name) || same[0]).at;
  const warp = Math.max(0, warpOf(from, from.events[n]));
  const at = to.warps[warp] ? samePlace(from, n, to, warp) : -1;
  return at >= 0 ? at : Math.round((n / Math.max(1, from.events.length - 1)) * (to.events.length - 1));
}

/* Where a warp is as often at a line with the same text, and there at the same kind of event (for a finding: at what it
 * reports). A line that only one of the two has stands for the one that the warp was at before. -1: there is none. */
function samePlace(from, n, to, warp) {
  const visits = (model, last) => {
    const lines = new Map();
    for (const step of model.warps[warp].steps) if (step <= last) listOf(lines, lineText(model, step)).push(step);
    return lines;
  };
  const [mine, theirs] = [visits(from, n), visits(to, Infinity)];
  const done = from.warps[warp].events.filter((k) => k <= n && !from.findings.includes(k)).pop();
  for (const step of from.warps[warp].steps.slice(0, countUpTo(from.warps[warp].steps, n)).reverse()) {
    const found = theirs.get(lineText(from, step));
    if (!found) continue;
    const visit = mine.get(lineText(from, step)).indexOf(step);
    const at = found[Math.min(visit, found.length - 1)];
    const next = firstAfter(to.warps[warp].steps, at);
    const alike = to.warps[warp].events.find((k) => k > at && (next < 0 || k < next) &&
      to.events[k][0] === from.events[done][0]);
    return done <= step || alike === undefined ? at : alike;
  }
  return -1;
}

/* The text of the source line that an event is at; of an instruction without one, the PTX. */
function lineText(model, n) {
  const place = placeOf(model, model.events[n]);
  if (place.file < 0) return place.text;
  const file = model.recording.files[place.file];
  if (!file.lines) file.lines = (file.text || "").split("\n").map((line) => line.trim());
  return file.lines[place.line - 1] || placeText(model, place);
}

/* The texts of the other side's lines of this file: of the one with its name, else, for the kernel's file, of the kernel's
 * file there. null: there is no other side, or no such file in it. */
function linesOfOtherSide(file) {
  const other = app.recordings[1 - app.view.side];
  const name = (path) => path.replace(/^.*\//, "");
  if (!other || file < 0) return null;
  const source = other.files.find((each) => name(each.path) === name(app.recording.files[file].path)) ||
    (file === kernelFile(app.recording) ? other.files[kernelFile(other)] : null);
  return source && source.text ? source.text.split("\n").map((line) => line.trim()) : null;
}

/* The file of the first place outside of functions: that of the kernel. */
const kernelFile = (recording) => (recording.places.find((place) => place && place.file >= 0) || { file: -1 }).file;

/* The event at which a line has done its work for the first time: of a barrier, the last arrival. -1: no thread comes there. */
function eventAtLine(model, file, line) {
  const isThere = (event) => placeOf(model, event) && lineIn(placeOf(model, event), file) === line;
  const first = (is) => model.events.findIndex((event) => is(event) && isThere(event));
  const found = [(event) => event[0] === "bar" && event[8] === 1, ([kind]) => kind !== "step", () => true].map(first);
  const at = found.find((n) => n >= 0);
  return at === undefined ? -1 : at;
}

/* The lines of the fix that the mistake lacks, in words, each with a way there. */
function showFix() {
  const box = byId("fixed");
  const file = kernelFile(app.recording);
  const others = app.view.side ? linesOfOtherSide(file) : null;
  box.hidden = !others;
  if (!others) return;
  app.chosenFile = null;
  openFile(file);
  const lines = [...app.lineOf].filter(([, line]) => line.querySelector(".differs"));
  const heading = `The ${lines.length > 1 ? "lines" : "line"} of the fix: `;
  box.replaceChildren(lines.length ? heading : "The fix only takes lines away: switch to the mistake to see which.",
    ...lines.slice(0, 3).map(([number, line]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${number}: ${line.querySelector("code").textContent}`;
      button.onclick = () => {
        const at = eventAtLine(app.model, file, number);
        app.chosenFile = at < 0 ? file : null;
        if (at >= 0) standAt(at);
        showNow();
        scrollToLine(line);
      };
      return button;
    }), lines.length > 3 ? ` and ${lines.length - 3} more` : "");
}
