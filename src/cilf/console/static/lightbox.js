// An instance in full size: zoom, arrows, its neighbours and its history.

import { $, attempt, make } from "./dom.js";
import { chooseRows, desk } from "./desk.js";
import { isText, makeMiniature, picturePath } from "./pictures.js";
import { send } from "./server.js";
import { showSimilar } from "./similar.js";
import { listOf } from "./members.js";

const MAX_ZOOM = 16;
const N_NEIGHBOURS = 8;
const PICTURES = { original: "the original file", whole: "the picture that the model gets", thumbnail: "a thumbnail; there is no larger picture" };
let rows = []; // the list that the arrows walk along
let current = null; // the instance that is shown
let view = { zoom: 1, x: 0, y: 0 };

export function openLightbox(row, thumb) {
  rows = thumb ? listOf(thumb).map((one) => Number(one.dataset.row)) : [row];
  if (!$("#lightbox").open) $("#lightbox").showModal();
  show(row);
}

const show = (row) => attempt(async () => {
  view = { zoom: 1, x: 0, y: 0 };
  const base = `/api/windows/${desk.window}/instances/${row}`;
  const [one, similar] = await Promise.all([send("GET", base), send("GET", `${base}/similar?most=${N_NEIGHBOURS}`)]);
  if (!$("#lightbox").open) return;
  current = one;
  $("#lightbox-title").textContent = one.identity;
  const place = rows.indexOf(row);
  $("#lightbox-place").textContent = rows.length > 1 && place >= 0 ? `${place + 1} of ${rows.length}` : "";
  showContent(one);
  showFacts(one);
  $("#lightbox-neighbours").replaceChildren(...similar.window.map(makeNeighbour));
  $("#lightbox-known").replaceChildren(...similar.known.map(makeKept));
  $("#lightbox-history").replaceChildren(...describeHistory(one));
  showIsChosen();
});

async function showContent(one) {
  const stage = $("#lightbox .stage");
  $("#lightbox-file").hidden = isText();
  if (isText()) { stage.replaceChildren(make("p", { textContent: one.text })); return; }
  const path = picturePath(one.row);
  const response = await fetch(path);
  if (!response.ok || current !== one) return;
  const image = make("img", { src: path, alt: `Instance ${one.identity}`, draggable: false });
  const what = response.headers.get("X-Picture");
  image.classList.toggle("coarse", what === "thumbnail");
  image.addEventListener("load", () => {
    image.classList.toggle("coarse", image.naturalWidth < 200);
    $("#lightbox-size").textContent = `${image.naturalWidth} × ${image.naturalHeight} pixels, ${PICTURES[what]}`;
  });
  $("#lightbox-file").href = path;
  stage.replaceChildren(image);
  applyZoom();
}

function showFacts(one) {
  const facts = [
    ["Cluster", one.cluster === null ? "known" : one.cluster], ["Name", one.name || "–"], ["Nearest class", one.nearest],
    ["Novelty", one.novelty.toFixed(3)], ["Near-duplicates", one.rows.length - 1],
  ];
  $("#lightbox-facts").replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
}

function makeNeighbour(one) {
  const place = one.name || (one.cluster === null ? one.nearest : `cl. ${one.cluster}`);
  const caption = make("span", { className: "given", textContent: place });
  const button = make("button", { type: "button", className: "neighbour" }, makeMiniature(one.row), caption);
  button.dataset.show = one.row;
  button.title = `${one.identity}, similarity ${one.similarity.toFixed(2)}`;
  button.setAttribute("aria-label", `${place}, show ${one.identity}`);
  return button;
}

function makeKept(one) {
  const item = make("li", { title: `similarity ${one.similarity.toFixed(2)}` });
  if (one.text) item.append(make("span", { className: "miniature texts", textContent: one.text }));
  else if (one.has_picture) item.append(make("img", { className: "miniature", alt: "", src: `/api/windows/${desk.window}/known/${one.row}.png` }));
  item.append(make("span", { className: "given", textContent: one.name }));
  return item;
}

function describeHistory(one) {
  if (!one.history.length) return [make("li", { className: "soft", textContent: "There is no change yet." })];
  return one.history.map((line) => make("li", { className: line.undone ? "undone" : "", textContent: `${line.person} ${line.sentence}, ${line.time.slice(0, 16).replace("T", " ")}` }));
}

const isChosen = () => current.rows.every((row) => desk.rows.has(row));

function showIsChosen() {
  $("#lightbox-choose").setAttribute("aria-pressed", isChosen());
}

function walk(by) {
  const place = rows.indexOf(current.row) + by;
  if (rows[place] !== undefined) show(rows[place]);
}

// ------------------------------------------------------------------ zoom

function applyZoom() {
  const image = $("#lightbox .stage img");
  if (image) image.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.zoom})`;
}

// Zoom, so that the point at (x, y) from the middle of the stage stays where it is.
function zoom(by, x = 0, y = 0) {
  const after = Math.min(MAX_ZOOM, Math.max(1, view.zoom * by)), change = after / view.zoom;
  view = after === 1 ? { zoom: 1, x: 0, y: 0 } : { zoom: after, x: x - (x - view.x) * change, y: y - (y - view.y) * change };
  applyZoom();
}

const ACTIONS = {
  previous: () => walk(-1), next: () => walk(1), closer: () => zoom(1.5), farther: () => zoom(1 / 1.5),
  fit: () => zoom(0), close: () => $("#lightbox").close(),
  choose: () => { chooseRows(current.rows, !isChosen()); showIsChosen(); },
  similar: () => { $("#lightbox").close(); showSimilar(current.row); },
};
const KEYS = { ArrowLeft: "previous", ArrowRight: "next", "+": "closer", "=": "closer", "-": "farther", 0: "fit", c: "choose", f: "similar" };

export function openLightboxControls() {
  const box = $("#lightbox"), stage = $(".stage", box);
  box.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.light) ACTIONS[button.dataset.light]();
    if (button?.dataset.show) show(Number(button.dataset.show));
  });
  box.addEventListener("keydown", (event) => {
    const action = KEYS[event.key];
    if (!action || !current || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    ACTIONS[action]();
  });
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const area = stage.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - area.left - area.width / 2, event.clientY - area.top - area.height / 2);
  }, { passive: false });
  stage.addEventListener("pointerdown", (event) => stage.setPointerCapture(event.pointerId));
  stage.addEventListener("pointermove", (event) => {
    if (!event.buttons || view.zoom === 1) return;
    view.x += event.movementX;
    view.y += event.movementY;
    applyZoom();
  });
}
