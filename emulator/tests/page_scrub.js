/* page_scrub.js: runs inside a page that emulate --page wrote, behind its own scripts. Moves the slider to
 * moments all over the recording, and leaves how long the page took to show each, layout included, in an
 * element that the test reads. */
(function () {
  const MOVES = 300;
  const scrub = byId("scrub"), last = Number(scrub.max), times = [];
  for (let i = 0; i < MOVES; i++) {
    scrub.value = Math.floor(((i * 0.6180339887) % 1) * last);
    const begin = performance.now();
    scrub.dispatchEvent(new Event("input", { bubbles: true }));
    showNow(); // what the page does at its next frame
    document.body.getBoundingClientRect();
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  const result = document.createElement("pre");
  result.id = "scrub-result";
  const at = (share) => times[Math.floor((times.length - 1) * share)].toFixed(0);
  result.textContent = `${last + 1} events: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, most ${at(1)} ms`;
  document.body.append(result);
})();
