/* panels.js: barriers and answers. */

/* A row for each barrier of the block shown. */
function showBarriers() {
  const { model, view } = app;
  const box = byId("barriers");
  const barriers = [...model.barriers.values()].filter((barrier) => rankOf(barrier.address) === view.block)
    .sort((a, b) => a.address - b.address);
  while (box.children.length > barriers.length) box.lastChild.remove();
  while (box.children.length < barriers.length) box.append(button("", null, ...Array.from({ length: 4 }, () => tag("span", ""))));
  barriers.forEach((barrier, i) => showBarrier(box.children[i], barrier));
  byId("no-barriers").hidden = barriers.length > 0;
}

function showBarrier(row, { address, name }) {
  const { model, view } = app;
  const state = barrierState(model, address, view.event);
  const cells = [name, ...(!state ? ["not yet", "", ""] : !state.alive ? ["invalidated", "", ""]
    : [`${state.phase}, ${state.parity}`, `${state.pending} of ${state.expected}`, state.bytes.toLocaleString("en-US")])];
  cells.forEach((text, i) => {
    if (row.children[i].textContent !== text) row.children[i].textContent = text;
  });
  const birth = barrierBirth(model, model.barriers.get(address), view.event);
  row.title = `at ${addressName(model, address)}` +
    (birth < 0 ? "" : `, initialised at ${placeText(model, placeOf(model, model.events[birth]))}`);
  row.classList.toggle("odd", Boolean(state && state.parity));
  row.classList.toggle("changed", Boolean(state && state.event === view.event));
  row.setAttribute("aria-pressed", String(view.focus === `barrier:${address}`));
  row.onclick = () => {
    view.focus = `barrier:${address}`;
    show();
  };
}

/* ---- Answers ---- */

function fill(element, parts) {
  element.replaceChildren(...parts.map((part) => {
    if (typeof part === "string") return part;
    const link = tag("a", "", part.text);
    link.href = "#";
    link.onclick = (click) => {
      click.preventDefault();
      goTo(part.event);
    };
    return link;
  }));
}

function showAnswers() {
  const { model, view } = app;
  const [kind, key] = view.focus.split(":");
  const event = model.events[view.event];
  const warp = kind === "warp" ? Number(key) : event ? Math.max(0, warpOf(model, event)) : 0;
  byId("why-title").textContent = warpWaits(model, warp, view.event).length ? `Why is ${warpName(model, warp)} waiting?`
    : `What does ${warpName(model, warp)} do?`;
  fill(byId("why"), explainWait(model, warp, view.event));
  fill(byId("who"), byteAnswer());
}
