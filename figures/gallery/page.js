"use strict";
const form = document.getElementById("filters");
const list = document.getElementById("items");
const dialog = document.getElementById("large");
const enlarged = document.getElementById("enlarged");
const items = [...list.querySelectorAll("article")];
const values = new Map(items.map((item) => [item, JSON.parse(item.dataset.values)]));
let shown = items;
let current = null;

function bound(name) {
  const text = form.elements[name].value;
  return text === "" ? null : Number(text);
}

function passes(item) {
  const own = values.get(item);
  for (const select of form.querySelectorAll("select[data-key]")) {
    if (select.value !== "" && String(own[select.dataset.key]) !== select.value) return false;
  }
  const least = bound("least"), most = bound("most");
  if (least !== null || most !== null) {
    const number = own[form.elements.measure.value];
    if (number === undefined || (least !== null && number < least)) return false;
    if (most !== null && number > most) return false;
  }
  const words = form.elements.words.value.trim().toLowerCase();
  return words === "" || item.textContent.toLowerCase().includes(words);
}

function sortKey(item) {
  const number = values.get(item)[form.elements.sort.value];
  return number === undefined ? null : number;
}

function compare(one, other) {
  const first = sortKey(one), second = sortKey(other);
  if (first === null || second === null) return (first === null) - (second === null);
  return form.elements.order.value === "down" ? second - first : first - second;
}

function update() {
  shown = items.filter(passes);
  for (const item of items) item.hidden = true;
  for (const item of shown) item.hidden = false;
  if (form.elements.sort.value !== "") shown.sort(compare);
  list.append(...shown);
  const noun = items.length === 1 ? "question" : "questions";
  document.getElementById("count").textContent = `${shown.length} of ${items.length} ${noun}`;
}

function enlarge(item) {
  current = item;
  const copy = item.cloneNode(true);
  copy.removeAttribute("id");
  const heading = copy.querySelector("h2");
  heading.textContent = heading.textContent;
  enlarged.replaceChildren(copy);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function step(by) {
  if (by === 0) return dialog.close();
  const place = shown.indexOf(current) + by;
  if (place >= 0 && place < shown.length) enlarge(shown[place]);
}

form.addEventListener("input", update);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(update));
list.addEventListener("click", (event) => {
  const item = event.target.closest("article");
  if (item && event.target.closest(".frame, h2 button")) enlarge(item);
});
dialog.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-step]");
  if (button) step(Number(button.dataset.step));
  else if (event.target === dialog) dialog.close();
});
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
dialog.addEventListener("close", () => current.querySelector("h2 button").focus());
update();
