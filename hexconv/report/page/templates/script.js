"use strict";
// Folding of many blocks at a time, sorting of tables, stripes that move, and addresses that keep what is open and how
// a table is sorted: #case-NAME, #all-cases;sort=3,descending. What is too wide for the screen says that it scrolls, and
// fades where it goes on. The page is whole without it: where scripts run, what a folded case holds is the text of a
// noscript element, and becomes elements when the case is opened. Of a network that is nearly all of the page.
const units = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
const size = (text) => {
  const found = /(\d[\d,]*\.?\d*)\s*(KiB|MiB|GiB)?/.exec(text);
  return found ? Number(found[1].replaceAll(",", "")) * (units[found[2]] ?? 1) : -1;
};
const keep = (place) => history.replaceState(null, "", `#${place}`);

const sort = (heading, order) => {
  const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
  const text = (row) => row.cells[column]?.textContent ?? "";
  const rows = [...body.rows];
  const isText = rows.filter((row) => /^[^\d]*[a-z]{3}/i.test(text(row))).length > rows.length / 2;
  const sign = order === "ascending" ? 1 : -1;
  const compare = (one, other) => (isText ? text(one).localeCompare(text(other)) : size(text(one)) - size(text(other)));
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.ariaSort = order;
  body.append(...rows.sort((one, other) => sign * compare(one, other)));
};
for (const heading of document.querySelectorAll("[data-sorts] thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.title = "Sort by this column";
  button.append(...heading.childNodes);
  button.addEventListener("click", () => {
    const order = heading.ariaSort === "descending" ? "ascending" : "descending";
    sort(heading, order);
    keep(`${heading.closest("table").id};sort=${heading.cellIndex},${order}`);
  });
  heading.append(button);
}

const beneath = (button) => button.closest("[data-folds]").querySelectorAll(".tir details");
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-fold]");
  if (!button) return;
  for (const block of beneath(button)) block.open = button.dataset.fold === "open";
});

const move = (figure) => {
  const steps = JSON.parse(figure.dataset.steps), told = JSON.parse(figure.dataset.told);
  const slider = figure.querySelector("input"), output = figure.querySelector("output");
  const play = figure.querySelector("[data-play]");
  let timer = 0;
  const show = () => {
    const step = steps[slider.value - 1];
    for (const box of figure.querySelectorAll("[data-box]")) {
      const [held, heldHeight, made, madeHeight] = step[box.dataset.tensor];
      const [top, height] = box.dataset.box === "held" ? [held, heldHeight] : [made, madeHeight];
      box.setAttribute("y", Number(box.dataset.top) + top);
      box.setAttribute("height", height);
    }
    output.textContent = `Step ${slider.value} of ${steps.length}. ${told[slider.value - 1]}`;
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
    output.ariaLive = "polite";
  };
  play.addEventListener("click", () => {
    if (timer) return stop();
    output.ariaLive = "off";
    play.textContent = "Stop";
    timer = setInterval(() => {
      slider.value = (slider.value % steps.length) + 1;
      show();
    }, 700);
  });
  slider.addEventListener("input", () => {
    stop();
    show();
  });
  figure.querySelector(".moves").hidden = false;
  show();
};

// "left right": the sides at which something is hidden; no attribute where all of it shows.
const tell = (region) => {
  const hidden = region.scrollWidth - region.clientWidth;
  const sides = [region.scrollLeft > 1 && "left", region.scrollLeft < hidden - 1 && "right"].filter(Boolean).join(" ");
  if (hidden > 1) region.dataset.scrolls = sides;
  else delete region.dataset.scrolls;
};
const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => tell(target.closest(".scroll"))));

const enliven = (part) => {
  // On a phone a long table stands between a drawing and the next one.
  for (const table of part.querySelectorAll("details.numbers[open]")) if (innerWidth < 600) table.open = false;
  for (const button of part.querySelectorAll("button[data-fold]")) button.hidden = false;
  part.querySelectorAll(".moving").forEach(move);
  // The first sizes come from the observer too, of what is laid out alone: to ask for them here would lay out all that
  // is folded.
  for (const region of part.querySelectorAll(".scroll")) {
    region.addEventListener("scroll", () => tell(region), { passive: true });
    watch.observe(region);
    for (const inside of region.children) watch.observe(inside);
  }
};
enliven(document);

const make = (block) => {
  const unmade = block.querySelector(":scope > noscript");
  if (!unmade) return;
  unmade.outerHTML = unmade.textContent;
  enliven(block);
};
const cases = document.querySelectorAll(".case");
document.addEventListener("toggle", ({ target }) => target.open && make(target), true);
// What the browser finds in a page are its elements.
document.addEventListener("keydown", ({ key, ctrlKey, metaKey }) => {
  if (key === "F3" || ((ctrlKey || metaKey) && key.toLowerCase() === "f")) cases.forEach(make);
});

const reveal = () => {
  const [place, ...states] = decodeURIComponent(location.hash.slice(1)).split(";");
  if (!place) return;
  const holds = ({ lastElementChild }) => lastElementChild.textContent.includes(` id="${place}"`);
  if (!document.getElementById(place)) [...cases].filter(holds).forEach(make);
  const target = document.getElementById(place);
  if (!target) return;
  for (let block = target; block; block = block.parentElement) if (block.tagName === "DETAILS") block.open = true;
  for (const state of states) {
    const [column, order] = state.replace("sort=", "").split(",");
    const heading = target.tHead?.rows[0].cells[column];
    if (heading && /^(as|des)cending$/.test(order)) sort(heading, order);
  }
  target.scrollIntoView();
};
for (const block of cases) {
  const summary = block.querySelector("summary"), name = summary.querySelector("h3").id;
  summary.addEventListener("click", () => {
    make(block);
    keep(block.open ? "cases" : name);
  });
}
addEventListener("hashchange", reveal);
reveal();
