"use strict";
// Folding of many blocks at a time, and links that open what they lead to. The page is whole without it.
const beneath = (button) => button.closest("[data-folds]").querySelectorAll(".tir details");
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-fold]");
  if (!button) return;
  for (const block of beneath(button)) block.open = button.dataset.fold === "open";
});
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let block = target; block; block = block.parentElement) if (block.tagName === "DETAILS") block.open = true;
  if (target) target.scrollIntoView();
};
for (const button of document.querySelectorAll("button[data-fold]")) button.hidden = false;
addEventListener("hashchange", reveal);
reveal();
