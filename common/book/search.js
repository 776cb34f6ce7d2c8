// search.js: finds words in all pages of the book. SECTIONS (sections.js) holds [page, anchor, title, words] of
// each section; it is a script, not data to fetch, so that the search works from a folder, without a server.
"use strict";

const MOST_RESULTS = 20;
const EXCERPT = 90; // characters on either side of what was found
const input = document.querySelector("input[type=search]");
const results = input.nextElementSibling;

// A section matches if it holds every word. A word in its title counts more than one in its text.
function score(section, words) {
  const title = section[2].toLowerCase();
  const text = section[3].toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (title.includes(word)) sum += 10;
    else if (text.includes(word)) sum += 1;
    else return 0;
  }
  return sum;
}

function resultItem(section, word) {
  const [page, anchor, title, text] = section;
  const at = Math.max(0, text.toLowerCase().indexOf(word));
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `${document.body.dataset.up}${page}#${anchor}`;
  link.textContent = title;
  const excerpt = document.createElement("p");
  excerpt.textContent = text.slice(Math.max(0, at - EXCERPT), at + EXCERPT);
  item.append(link, excerpt);
  return item;
}

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const found = SECTIONS.map((section) => [words.length ? score(section, words) : 0, section])
    .filter(([sum]) => sum > 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, MOST_RESULTS);
  results.replaceChildren(...found.map(([, section]) => resultItem(section, words[0])));
  results.hidden = words.length === 0;
  if (words.length && !found.length) results.textContent = "Nothing found.";
}

input.addEventListener("input", search);
input.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  input.value = "";
  search();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  input.focus();
});
