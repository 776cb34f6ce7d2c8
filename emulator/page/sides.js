/* sides.js: the recordings of the page: one, or those of a mistake and of its fix or of two programs to compare, between which the
 * reader switches and stays at the same moment. */

/* Shows this recording from now on; openCluster comes next. */
function openSide(side) {
  app.view.side = side;
  app.recording = app.recordings[side];
  const { recording } = app;
  byId("title").textContent = document.title = recording.title;
  byId("cluster").replaceChildren(...clusterNames(recording).map((name, i) => new Option(name, i)));
  const ptx = recording.places.some((place) => place && place.file < 0);
  byId("file").replaceChildren(
    new Option("follow the event", -1), new Option("follow into functions", INNER), ...(ptx ? [new Option("PTX", PTX)] : []),
    ...recording.files.map((file, i) => new Option(file.path.replace(/^.*\//, ""), i)));
  byId("stopped").hidden = !recording.stopped;
  byId("stopped").textContent = recording.stopped || "";
  listChoices();
  byId("sides").hidden = app.recordings.length === 1;
  for (const [i, each] of [...byId("sides").children].entries()) {
    each.setAttribute("aria-pressed", String(side === i));
    each.textContent = nameOfSide(i).replace(/^the /, "");
  }
  app.lists.clear();
  app.chosenFile = null;
  app.sourceFile = null;
}

function showSide(side) {
  if (side === app.view.side || side >= app.recordings.length) return;
  const { cluster } = app.model;
  openSide(side);
  showCluster(Math.max(0, sameCluster(app.recording, cluster)));
}

const sameCluster = ({ clusters }, { launch, number }) => clusters.findIndex((each) => each.launch === launch && each.number === number);

/* Another run, at the same moment. */
function showCluster(index) {
  const { model: before, view: { event } } = app;
  openCluster(index);
  app.view.event = sameMoment(before, event, app.model);
  show();
}

/* The moment of one run that is event n of another: for a report, where the fix has done its work; the key moment of that name, else a
 * place in the source, else the same share of all events. */
function sameMoment(from, n, to) {
  if (n < 0) return n;
  if (to.cluster === from.cluster) return to.inRun === from.inRun ? n : twinOf(from, n);
  const named = keyMoments(from).filter(({ at }) => at === n).map(({ name }) => name);
  if (named.includes("wrong")) return to.events.length - 1;
  const { added } = (app.mistake && named.includes("finding") && pictureShown()) || { added: -1 };
  if (added >= 0) return added;
  if (to.findings.length && [...from.pictures || []].some(([, picture]) => picture.added === n)) return to.findings[0];
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
    const [kind, , of] = from.events[done];
    const all = to.warps[warp].events.filter((k) => k > at && (next < 0 || k < next) && to.events[k][0] === kind);
    const alike = [...all.filter((k) => kind === "mbarrier" && to.events[k][2] === of), ...all][0];
    return done <= step || alike === undefined ? at : alike;
  }
  return -1;
}

/* The text of the source line that an event is at; of an instruction without one, the PTX. */
function lineText(model, n) {
  const place = placeOf(model, model.events[n]);
  if (place.file < 0) return place.text;
  return linesOfFile(model.recording, place.file)[place.line - 1] || placeText(model, place);
}

/* The other side's lines of this file: of the one with its name, else, for the kernel's file, of the kernel's file there. None: there
 * is no other side, or no such file in it. */
function linesOfOtherSide(file) {
  const other = app.recordings[1 - app.view.side];
  const name = (path) => path.replace(/^.*\//, "");
  if (!other || file < 0) return [];
  const source = other.files.findIndex((each) => name(each.path) === name(app.recording.files[file].path));
  return linesOfFile(other, source < 0 && file === kernelFile(app.recording) ? kernelFile(other) : source);
}

/* The first event from `first` to `last` at which one of these lines has done its work: of a barrier, the last arrival. -1: none. */
function workOfLines(model, file, lines, first = 0, last = model.events.length) {
  const isThere = (event, n) => n >= first && n <= last && placeOf(model, event) && lines.includes(lineIn(placeOf(model, event), file));
  const isLast = (event, n) => (event[0] === "bar" ? event[8] === 1 : isBarrier(event) && event[3] !== "landed" && roseTo(model, event, n));
  const isDone = [isLast, ([kind]) => !["step", "wait", "woke"].includes(kind), () => true];
  const found = isDone.map((is) => model.events.findIndex((event, n) => is(event, n) && isThere(event, n))).filter((n) => n >= 0);
  return found.length ? found[0] : -1;
}

/* The mistake's run of the same launch, which the fix is compared with. */
function mistakeOf(cluster) {
  const [recording] = app.recordings;
  const index = sameCluster(recording, cluster);
  return index < 0 ? null : buildModel(recording, recording.clusters[index]);
}
