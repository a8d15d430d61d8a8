"use strict";
// What is too wide for the screen says that it scrolls, fades where it goes on, and can be reached by keys.
const WIDE = ".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset .drawing, .md-typeset p:has(> img)";
const tell = (region) => {
  const hidden = region.scrollWidth - region.clientWidth;
  const sides = [region.scrollLeft > 1 && "left", region.scrollLeft < hidden - 1 && "right"].filter(Boolean).join(" ");
  region.classList.toggle("scrolls", hidden > 1);
  region.dataset.hidden = hidden > 1 ? sides : "";
  if (hidden > 1) region.tabIndex = 0;
};
const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => tell(target.closest("[data-hidden]"))));
let count = 0;
const name = (element, role, label) => {
  if (role) element.setAttribute("role", role);
  element.setAttribute("aria-label", label);
};
// The theme makes scrolling frames, bars of buttons and a search of its own, some of them late, and without names.
const dress = () => {
  for (const region of document.querySelectorAll(`:is(${WIDE}):not([data-hidden])`)) {
    name(region, "region", `${region.tagName === "CODE" ? "Listing" : "Table or drawing"} ${++count}`);
    tell(region);
    region.addEventListener("scroll", () => tell(region), { passive: true });
    watch.observe(region);
    for (const inside of region.children) watch.observe(inside);
  }
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([aria-label])")) name(bar, "", `Buttons ${++count}`);
  for (const search of document.querySelectorAll("[data-md-component=search]:not([aria-label])")) name(search, "", "Search");
};
new MutationObserver(dress).observe(document.body, { childList: true, subtree: true });
dress();
