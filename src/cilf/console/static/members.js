// Lists of instances: loading, order, ranges, and the strip of what is chosen.

import { $, $$, count, kept, make } from "./dom.js";
import { cards, chooseRows, desk, numberOf, on, rowsOf, showChosen } from "./desk.js";
import { makeMiniature } from "./pictures.js";
import { put, send } from "./server.js";

const MOST_IN_STRIP = 24;
const asked = new WeakMap(); // the last question about each list
let anchor = null; // the thumbnail that a range starts from

export function openMembers() {
  for (const name of ["sort", "only"]) {
    const field = $(`#${name}`);
    field.value = kept.get(`members-${name}`, field.value);
    if (!field.value) field.selectedIndex = 0;
    field.addEventListener("change", () => { kept.set(`members-${name}`, field.value); reload(); });
  }
  document.addEventListener("toggle", (event) => {
    const box = event.target;
    if (box.dataset?.members !== undefined && box.open && !$(".members", box).childElementCount) load(box, 0);
  }, true);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.more !== undefined) more(button);
    if (button.dataset.chooseAll !== undefined) chooseAll(button.closest("[data-members]"));
    if (button.dataset.chooseListed !== undefined) $$("button.thumb", button.closest("section")).forEach((thumb) => chooseRows(rowsOf(thumb)));
    if (button.classList.contains("thumb")) choose(button, event.shiftKey);
  });
  on("chosen", showStrip);
  on("refreshed", () => { if ($("#all").open) reloadBox($("#all")); });
}

function query(box, start) {
  const values = new URLSearchParams({ start, sort: $("#sort").value, only: $("#only").value });
  if (box.dataset.cluster) values.set("cluster", box.dataset.cluster);
  if (box.dataset.label) values.set("label", box.dataset.label);
  return values;
}

async function load(box, start) {
  const thumbs = await ask(box, start);
  if (!thumbs) return;
  $(".members", box).append(...thumbs);
  showChosen();
}

async function reloadBox(box) {
  const thumbs = await ask(box, 0);
  if (!thumbs) return;
  $(".members", box).replaceChildren(...thumbs);
  showChosen();
}

// The answer to the last question about a list; null if another one has been asked meanwhile.
async function ask(box, start) {
  const page = make("div"), question = {};
  asked.set(box, question);
  await put(page, `/windows/${desk.window}/section/members?${query(box, start)}`);
  return asked.get(box) === question ? page.childNodes : null;
}

function reload() {
  $$("[data-members]").forEach((box) => (box.open ? reloadBox(box) : $(".members", box).replaceChildren()));
}

function more(button) {
  const box = button.closest("[data-members]");
  button.remove();
  load(box, Number(button.dataset.start));
}

export async function chooseAll(box) {
  const values = query(box, 0);
  values.delete("start");
  chooseRows(await send("GET", `/api/windows/${desk.window}/rows?${values}`));
}

// The list to choose all of: the one in focus, else that of the cluster in focus, if it is open.
export function listInFocus() {
  const box = document.activeElement?.closest("[data-members][open]");
  const card = cards().find((one) => numberOf(one) === desk.current);
  return box || (card && $("details[open]", card)) || $("#all[open]");
}

// With Shift, everything between the last thumbnail and this one is chosen.
export function choose(thumb, isRange) {
  const list = listOf(thumb), from = list.indexOf(anchor), to = list.indexOf(thumb);
  if (isRange && from >= 0) {
    list.slice(Math.min(from, to), Math.max(from, to) + 1).forEach((one) => chooseRows(rowsOf(one)));
    return;
  }
  anchor = thumb;
  chooseRows(rowsOf(thumb), thumb.getAttribute("aria-pressed") !== "true");
}

const CONTAINERS = "[data-members], .exemplars, #queries, #similar, #review";
export const listOf = (thumb) => $$("button.thumb", thumb.closest(CONTAINERS) || document);

// Go to the next or the previous thumbnail of a list.
export function step(thumb, by, isRange) {
  const list = listOf(thumb), next = list[list.indexOf(thumb) + by];
  if (!next) return;
  if (isRange) { if (!list.includes(anchor)) anchor = thumb; choose(next, true); }
  next.focus();
}

function showStrip() {
  const strip = $("#strip"), rows = [...desk.rows];
  strip.hidden = !rows.length;
  document.body.classList.toggle("has-strip", rows.length > 0);
  const shown = rows.slice(0, MOST_IN_STRIP).map((row) => make("span", {}, makeMiniature(row)));
  $(".pictures", strip).replaceChildren(...shown);
  const rest = rows.length - shown.length;
  $(".facts", strip).textContent = `${count(rows.length, "instance")} chosen${rest > 0 ? `, ${rest} of them not shown` : ""}`;
}
