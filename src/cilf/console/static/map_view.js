// The map on the page of a window: its legend, its controls, and the instance under the pointer.

import { $, attempt, kept, make } from "./dom.js";
import { cards, chooseRows, desk, numberOf, on, titleOf } from "./desk.js";
import { WindowMap } from "./map.js";
import { isText, thumbPath } from "./pictures.js";
import { send } from "./server.js";

const N_COLOURS = 8;
let map;
let shown = null; // the row under the pointer

export const clusterOf = (row) => map.data.cluster[row];

export function openMap() {
  map = new WindowMap($("#map"), { onHover: showInstance, onLeave: () => { $("#hover").hidden = true; }, onChoose: choose });
  const colouring = $("#colouring");
  colouring.value = kept.get("colouring", colouring.value);
  map.colouring = colouring.value;
  colouring.addEventListener("change", () => { kept.set("colouring", colouring.value); map.colourBy(colouring.value); showLegend(); });
  $("#map-controls").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) CONTROLS[button.dataset.map]();
  });
  $("#map").addEventListener("keydown", runMapKey);
  $("#legend").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    map.toggle(button.dataset.key);
    button.setAttribute("aria-pressed", !map.hidden.has(button.dataset.key));
  });
  on("chosen", () => { if (map.data) map.choose(desk.rows); });
  on("refreshed", drawMap);
  drawMap();
}

const CONTROLS = {
  closer: () => map.zoom(1.5), farther: () => map.zoom(1 / 1.5), fit: () => map.lookAt({ zoom: 1, x: 0, y: 0 }),
  pan() {
    map.panning = !map.panning;
    $("[data-map=pan]").setAttribute("aria-pressed", map.panning);
    $("#map").classList.toggle("panning", map.panning);
  },
};

function runMapKey(event) {
  const moves = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
  if (event.key === "+" || event.key === "-") CONTROLS[event.key === "+" ? "closer" : "farther"]();
  else if (moves[event.key] && map.view.zoom > 1) map.pan(...moves[event.key]);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

async function drawMap() {
  const response = await fetch(`/api/windows/${desk.window}/map`);
  if (!response.ok) return;
  map.show(await response.json());
  map.choose(desk.rows);
  showLegend();
}

function choose(rows, add) {
  if (!add) desk.rows.clear();
  chooseRows(rows);
}

function showLegend() {
  const { colouring, data } = map;
  if (colouring === "novelty") {
    const scale = make("li", { className: "gradient" }, "low novelty ", make("span", { className: "bar-scale" }), " high novelty");
    $("#legend").replaceChildren(scale);
    return;
  }
  const clusters = cards().map((card) => ({ key: `cluster ${numberOf(card)}`, colour: (numberOf(card) - 1) % N_COLOURS, ring: true, name: `${numberOf(card)} ${titleOf(card)}` }));
  const known = colouring === "cluster" ? [{ key: "known", colour: null, name: "known" }]
    : data.labels.map((name, place) => ({ key: `class ${place}`, colour: place % N_COLOURS, name }));
  const groups = colouring === "class" ? [...known, ...clusters.map((one) => ({ ...one, colour: null }))] : [...clusters, ...known];
  $("#legend").replaceChildren(...groups.map(makeLegendItem));
}

function makeLegendItem({ key, colour, ring, name }) {
  const mark = make("span", { className: `mark${ring ? " ring" : ""}${colour === null ? "" : ` k${colour}`}` });
  const button = make("button", { type: "button", className: "small", title: "Show or hide on the map" }, mark, ` ${name}`);
  button.dataset.key = key;
  button.setAttribute("aria-pressed", !map.hidden.has(key));
  return make("li", {}, button);
}

// ------------------------------------------------------------------ the instance under the pointer

function showInstance(row, x, y) {
  const hover = $("#hover"), { cluster, label, labels } = map.data;
  if (row === shown && !hover.hidden) { placeHover(x, y); return; }
  shown = row;
  const line = make("span", { textContent: cluster[row] ? `cluster ${cluster[row]}, nearest to ${labels[label[row]]}` : `known: ${labels[label[row]]}` });
  hover.replaceChildren(line);
  if (isText()) attempt(async () => {
    const { text } = await send("GET", `/api/windows/${desk.window}/instances/${row}`);
    if (row === shown) line.textContent += `: ${text}`;
  });
  else hover.prepend(make("img", { src: thumbPath(row), alt: "", className: $(".desk").dataset.form }));
  hover.hidden = false;
  placeHover(x, y);
}

function placeHover(x, y) {
  const hover = $("#hover");
  hover.style.left = `${Math.max(0, Math.min(x + 14, $("#map").clientWidth - hover.offsetWidth))}px`;
  hover.style.top = `${y + 14}px`;
}
