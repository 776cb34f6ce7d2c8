/* moments.js: the few moments of a run that a reader wants to see: found in the recording, shown as buttons. */

const roseTo = (model, event, n) => {
  const changes = model.barriers.get(event[2]).changes;
  const before = lastUpTo(changes, n - 1);
  return before >= 0 && event[4] > model.events[before][4];
};

/* Is this a copy into bytes that a copy has written before: a stage that is used again? */
const refills = (model, event) => event[11].some(([address]) =>
  (model.flights.get(address - (address % CELL_BYTES)) || []).some((copy) => copy.number < event[2]));

/* [name in the address bar, words, the first event that it is] */
const KEY_MOMENTS = [
  ["init", "barrier ready", (model, event) => event[0] === "mbarrier" && event[3] === "init"],
  ["expect", "bytes expected", (model, event) => event[0] === "mbarrier" && event[3] === "expect"],
  ["copy", "copy issued", (model, event) => event[0] === "copy"],
  ["landed", "copy landed", (model, event) => event[0] === "landed"],
  ["phase", "phase complete", (model, event, n) => event[0] === "mbarrier" && roseTo(model, event, n)],
  ["multiply", "first multiplication", (model, event) => event[0] === "wgmma"],
  ["refill", "first refill", (model, event) => event[0] === "copy" && refills(model, event)],
  ["finding", "finding", (model, event) => event[0] === "finding" || event[0] === "fault"],
  ["end", "end", (model, event, n) => n === model.events.length - 1],
];

/* The block in which an event happens, -1: in none alone. */
function blockOfEvent(model, event) {
  if (event[0] === "mbarrier") return rankOf(event[2]);
  const warp = warpOf(model, event);
  return warp < 0 ? -1 : Math.floor(warp / model.cluster.warps_per_block);
}

/* Those that this run has, in the order in which they come: {name, words, at}. Where a block is as good as another, it is
 * the first, which the page shows at first. */
function keyMoments(model) {
  const moments = [];
  for (const [name, words, is] of KEY_MOMENTS) {
    const first = (blocks) => model.events.findIndex((event, n) => blockOfEvent(model, event) < blocks && is(model, event, n));
    const at = name !== "finding" && first(1) >= 0 ? first(1) : first(Infinity);
    if (at >= 0) moments.push({ name, words, at });
  }
  return moments.sort((a, b) => a.at - b.at);
}

/* The n-th of them, counted from 1, as the keys are. */
function goToMoment(number) {
  if (number > app.moments.length) return;
  app.chosenMoment = app.moments[number - 1];
  standAt(app.chosenMoment.at);
  show();
}

function listMoments() {
  app.moments = keyMoments(app.model);
  byId("moments").replaceChildren(...app.moments.map(({ words }, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = `key ${i + 1}`;
    button.textContent = words;
    button.addEventListener("click", () => goToMoment(i + 1));
    return button;
  }));
}

function showMoments() {
  for (const [i, button] of [...byId("moments").children].entries())
    button.setAttribute("aria-pressed", String(app.moments[i].at === app.view.event));
}
