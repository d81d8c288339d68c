// Verbs and keys: what a button or key asks for, from what is chosen.

import { $, $$, attempt, count, say } from "./dom.js";
import { act, cards, chooseCluster, desk, numberOf, on, release, rowsOf, select, showChosen, targets, updateModel } from "./desk.js";
import { openDialog } from "./dialog.js";
import { openLightbox } from "./lightbox.js";
import { chooseAll, listInFocus, step } from "./members.js";
import { clusterOf } from "./map_view.js";
import { makeMiniature } from "./pictures.js";
import { send } from "./server.js";
import { showSimilar } from "./similar.js";

const MOST_SHOWN = 12; // pictures in a dialog

// The request of a verb, from the attributes of its button; null if something is missing.
function requestOf({ verb, takes, least, forRows }) {
  const rows = [...desk.rows], clusters = targets(), title = `cluster ${clusters.join(", ")}`;
  const subject = count(rows.length, "instance");
  if (takes === "rows" || (forRows && rows.length)) {
    if (!rows.length) return refuse("Choose instances first: click on them, or draw a line around them on the map.");
    return { verb: takes === "rows" ? verb : forRows, subject, body: { rows } };
  }
  if (takes === "cluster" && rows.length) {
    const cluster = clusterOf(rows[0]);
    if (!cluster || rows.some((row) => clusterOf(row) !== cluster)) return refuse(`Choose instances of one novel cluster to ${verb} them.`);
    return { verb, subject, body: { cluster, rows } };
  }
  if (rows.length && !desk.clusters.size) return refuse(`Instances are chosen, but ${verb} needs clusters: choose clusters, or release the instances (Esc).`);
  if (!clusters.length) return refuse("Choose a cluster first.");
  if (takes === "cluster") return { verb, subject: title, body: { cluster: clusters[0] } };
  if (clusters.length < Number(least)) return refuse(`Choose ${least} or more clusters to ${verb} (Space).`);
  return { verb, subject: title, body: { clusters } };
}

function refuse(text) { say(text, true); return null; }

// Small copies of what a request is about.
function picturesOf({ rows, clusters, cluster }) {
  const chosen = rows || cards().filter((card) => (clusters || [cluster]).includes(numberOf(card)))
    .flatMap((card) => $$(".exemplars .thumb", card).map((thumb) => Number(thumb.dataset.row)));
  return chosen.slice(0, MOST_SHOWN).map(makeMiniature);
}

export async function runVerb(button) {
  const request = requestOf(button.dataset), { dialog, title, rowsText } = button.dataset;
  if (!request) return;
  const { verb, subject, body } = request;
  if (dialog) {
    const value = await openDialog(dialog, `${title}: ${subject}`, body.rows ? rowsText : button.title, picturesOf(body));
    if (value === null) return;
    if (dialog === "person") body.assignee = value;
    else if (dialog === "target") body.to = /^\d+$/.test(value) ? Number(value) : value;
    else body.name = value;
  }
  await act(verb, body);
}

async function answerQuery() {
  const first = $("#queries .thumb");
  if (!first) { say("There is no query."); return; }
  desk.rows = new Set(rowsOf(first));
  showChosen();
  first.scrollIntoView({ block: "nearest" });
  await runVerb($("[data-verb=name]"));
}

// ------------------------------------------------------------------ likely classes, by digit

let likely = []; // the names of the most likely classes
let asked = null; // the request for them, while it is under way
let timer;

const subjectOf = () => (desk.rows.size ? { rows: [...desk.rows] } : { clusters: targets() });

async function findLikely() {
  const subject = subjectOf();
  const found = subject.rows || subject.clusters.length ? await send("POST", `/api/windows/${desk.window}/likely`, subject) : [];
  if (JSON.stringify(subject) !== JSON.stringify(subjectOf())) return; // something else is chosen by now
  likely = found.map((one) => one.name);
  $("#likely").replaceChildren(...found.map((one, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.dataset.likely = one.name;
    button.title = `Assign to “${one.name}”`;
    button.innerHTML = "<kbd aria-hidden='true'></kbd> <span></span>";
    button.firstChild.textContent = (place + 1) % 10;
    button.lastChild.textContent = one.name;
    return button;
  }));
  $("#likely-box").hidden = !found.length;
}

function findLikelySoon() {
  clearTimeout(timer);
  timer = setTimeout(() => { asked = attempt(findLikely); }, 120);
}

async function assignLikely(place) {
  clearTimeout(timer);
  await (asked = attempt(findLikely));
  if (likely[place] === undefined) { say(`There is no class with the key ${(place + 1) % 10}.`, true); return; }
  await assign(likely[place]);
}

const assign = (name) => act(desk.rows.size ? "label" : "into", { ...subjectOf(), name });

// ------------------------------------------------------------------ keys

const enlarge = () => {
  const focused = document.activeElement?.closest("button.thumb");
  const row = focused ? Number(focused.dataset.row) : [...desk.rows][0] ?? Number($(`.cluster-card[data-cluster="${desk.current}"] .thumb`)?.dataset.row);
  if (!Number.isFinite(row)) { say("Choose an instance first.", true); return; }
  openLightbox(row, focused);
};
const similar = () => {
  const focused = document.activeElement?.closest("button.thumb");
  const row = focused ? Number(focused.dataset.row) : [...desk.rows][0];
  if (row === undefined) { say("Choose an instance first.", true); return; }
  showSimilar(row);
};
const all = () => {
  const box = listInFocus();
  if (box) attempt(() => chooseAll(box)); else say("Open a list of members first (Enter).", true);
};
const ACTIONS = {
  undo: () => act("undo", {}), update: () => updateModel(), help: () => $("#help").showModal(),
  query: answerQuery, enlarge, similar, all, release,
};

function runKey(key) {
  if (/^\d$/.test(key)) { assignLikely((Number(key) + 9) % 10); return true; }
  const button = $$("[aria-keyshortcuts]").find((one) => one.getAttribute("aria-keyshortcuts") === key);
  button?.click();
  return Boolean(button);
}

function moveFocus(event) {
  const thumb = event.target.closest("button.thumb");
  if (thumb && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
    event.preventDefault();
    step(thumb, event.key === "ArrowRight" ? 1 : -1, event.shiftKey);
    return;
  }
  const list = cards(), place = list.findIndex((card) => numberOf(card) === desk.current);
  const onCard = event.target.classList.contains("cluster-card") || event.target === document.body;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const focused = document.activeElement.closest(".cluster-card");
    const next = focused ? place + (event.key === "ArrowDown" ? 1 : -1) : place;
    select(list[Math.max(0, Math.min(list.length - 1, next))]);
  } else if (event.key === " " && onCard && list[place]) {
    event.preventDefault();
    chooseCluster(list[place], !desk.clusters.has(desk.current));
  } else if (event.key === "Enter" && onCard && list[place]) {
    const box = $("details", list[place]);
    box.open = !box.open;
  } else if (event.key === "Escape") {
    closeMenus();
    release();
  }
}

const closeMenus = () => $$("details.menu[open]").forEach((menu) => { menu.open = false; });

export function openVerbs() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!event.target.closest("details.menu > summary")) closeMenus();
    if (!button) return;
    if (button.dataset.verb) runVerb(button);
    if (button.dataset.action) ACTIONS[button.dataset.action]();
    if (button.dataset.likely) assign(button.dataset.likely);
    if (button.dataset.undo) act("undo", { event: Number(button.dataset.undo) });
    if (button.dataset.updateAnyway !== undefined) updateModel(true);
  });
  document.addEventListener("dblclick", (event) => {
    const thumb = event.target.closest("button.thumb");
    if (thumb) openLightbox(Number(thumb.dataset.row), thumb);
  });
  on("chosen", findLikelySoon);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox], [type=range]), select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
    if (runKey(event.key.toLowerCase())) event.preventDefault(); else moveFocus(event);
  });
}
