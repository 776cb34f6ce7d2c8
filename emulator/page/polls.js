/* polls.js: a warp that asks an mbarrier again and again only waits. Of such a loop its first round is kept, as one wait
 * that lasts until the warp goes on; the wait says how often the warp has asked. */

const POLL = /try_wait|test_wait/;

function foldPolls(events, places) {
  const line = (place) => [place.file, place.line, place.inner_file, place.inner_line].join();
  const asking = new Set(places.filter((place) => place && POLL.test(place.text)).map(line));
  const asks = places.map((place) => place && asking.has(line(place)));
  const loops = new Map(); // warp and lanes -> their loop
  const dropped = new Set();
  const close = (key) => {
    if (loops.has(key)) closeLoop(events, loops.get(key), dropped);
    loops.delete(key);
  };
  events.forEach((event, n) => {
    const [kind, , warp, mask, place] = event;
    const key = `${warp}:${mask}`;
    if (kind !== "step" && kind !== "wait" && kind !== "woke") {
      for (const each of [...loops.keys()]) if (each.startsWith(`${event[WARP_AT[kind]]}:`)) close(each);
      return;
    }
    const isStep = kind === "step";
    const loop = loops.get(key);
    if (loop && (!isStep || loop.rounds === 1 || loop.places.has(place))) {
      if (isStep && place === loop.first) loop.rounds++;
      if (isStep) loop.places.add(place);
      loop.events.push(n);
      if (loop.rounds === 1) loop.kept = loop.events.length;
      return;
    }
    close(key);
    if (isStep && asks[place]) loops.set(key, { first: place, places: new Set([place]), rounds: 1, events: [n], kept: 1 });
  });
  for (const key of [...loops.keys()]) close(key);
  return dropped.size ? events.filter((_, n) => !dropped.has(n)) : events;
}

/* A loop of one round stays as it is. `kept`: how many of the events belong to the first round. */
function closeLoop(events, loop, dropped) {
  if (loop.rounds === 1) return;
  const isKind = (kind) => (n) => events[n][0] === kind;
  const wait = loop.events.find(isKind("wait"));
  const last = loop.events.filter((n) => !isKind("step")(n)).pop();
  loop.events.forEach((n, i) => {
    const stays = n === wait || (n === last && isKind("woke")(n)) || (isKind("step")(n) && i < loop.kept && !(n > wait));
    if (!stays) dropped.add(n);
  });
  if (wait !== undefined) events[wait][6] = loop.rounds;
}
