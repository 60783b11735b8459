"use strict";
const form = document.getElementById("filters");
const list = document.getElementById("cards");
const dialog = document.getElementById("large");
const enlarged = document.getElementById("enlarged");
const cards = [...list.querySelectorAll("article")];
const values = new Map(cards.map((card) => [card, JSON.parse(card.dataset.values)]));
let shown = cards;
let current = null;

function bound(name) {
  const text = form.elements[name].value;
  return text === "" ? null : Number(text);
}

function passes(card) {
  const own = values.get(card);
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
  return words === "" || card.textContent.toLowerCase().includes(words);
}

function sortKey(card) {
  const number = values.get(card)[form.elements.sort.value];
  return number === undefined ? null : number;
}

function compare(one, other) {
  const first = sortKey(one), second = sortKey(other);
  if (first === null || second === null) return (first === null) - (second === null);
  return form.elements.order.value === "down" ? second - first : first - second;
}

function update() {
  shown = cards.filter(passes);
  for (const card of cards) card.hidden = true;
  for (const card of shown) card.hidden = false;
  if (form.elements.sort.value !== "") shown.sort(compare);
  list.append(...shown);
  const noun = cards.length === 1 ? "question" : "questions";
  document.getElementById("count").textContent = `${shown.length} of ${cards.length} ${noun}`;
}

function enlarge(card) {
  current = card;
  const copy = card.cloneNode(true);
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
  const card = event.target.closest("article");
  if (card && event.target.closest(".frame, h2 button")) enlarge(card);
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
