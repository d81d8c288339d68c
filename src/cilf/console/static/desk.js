// The state of a window's page: what is chosen, and the sections that follow the changes.

import { $, $$, attempt, count, say } from "./dom.js";
import { soon } from "./jobs.js";
import { personName, put, send } from "./server.js";

export const desk = { window: null, rows: new Set(), clusters: new Set(), current: null };

const listeners = { chosen: [], refreshed: [] };

// Call a function when what is chosen has changed ("chosen") or sections have come ("refreshed").
export const on = (name, listener) => listeners[name].push(listener);
const tell = (name) => Promise.all(listeners[name].map((listener) => listener()));

export const cards = () => $$("#clusters .cluster-card");
export const numberOf = (card) => Number(card.dataset.cluster);
export const titleOf = (card) => $(".title", card).textContent.trim();
export const version = () => Number($("#clusters .clusters").dataset.version);
export const rowsOf = (thumb) => thumb.dataset.rows.split(" ").map(Number);

// The clusters of a verb: the chosen ones in their order, else the one in focus.
export const targets = () => (desk.clusters.size ? [...desk.clusters] : desk.current ? [desk.current] : []);

export function select(card, focus = true) {
  if (!card) return;
  desk.current = numberOf(card);
  if (focus) card.focus();
  showStatus();
}

export function chooseCluster(card, chosen) {
  if (chosen) desk.clusters.add(numberOf(card)); else desk.clusters.delete(numberOf(card));
  showChosen();
}

export function chooseRows(rows, chosen = true) {
  rows.forEach((row) => (chosen ? desk.rows.add(row) : desk.rows.delete(row)));
  showChosen();
}

export function release() {
  desk.rows.clear();
  desk.clusters.clear();
  showChosen();
}

export function showChosen() {
  $$("button.thumb").forEach((thumb) => thumb.setAttribute("aria-pressed", rowsOf(thumb).every((row) => desk.rows.has(row))));
  cards().forEach((card) => {
    const chosen = desk.clusters.has(numberOf(card));
    card.classList.toggle("chosen", chosen);
    $("input[type=checkbox]", card).checked = chosen;
  });
  showStatus();
}

function showStatus() {
  const clusters = targets(), title = clusters.length ? `cluster ${clusters.join(", ")}` : "";
  $("#chosen").textContent = desk.rows.size ? `${count(desk.rows.size, "instance")} chosen` : title;
  tell("chosen");
}

// ------------------------------------------------------------------ changes

// The page is busy until all its sections are up to date.
let changing = 0;
async function busy(work) {
  $(".desk").setAttribute("aria-busy", ++changing > 0);
  try { await work(); } finally { $(".desk").setAttribute("aria-busy", --changing > 0); }
}

export const queriesPath = () => `/windows/${desk.window}/section/queries?strategy=${$("#strategy").value}`;
const boxKey = (box) => `${box.dataset.cluster} ${box.dataset.label || ""}`;
const SECTIONS = ["clusters", "known", "history", "update", "next", "review"];

export const refresh = () => busy(async () => {
  const focused = document.activeElement?.closest("#clusters");
  const open = $$(".work [data-members][open]").map(boxKey);
  const path = `/windows/${desk.window}/section/`;
  await Promise.all([put($("#queries"), queriesPath()), ...SECTIONS.map((name) => put($(`#${name}`), path + name))]);
  const there = new Set(cards().map(numberOf));
  desk.clusters = new Set([...desk.clusters].filter((cluster) => there.has(cluster)));
  if (!there.has(desk.current)) desk.current = cards().length ? numberOf(cards()[0]) : null;
  $$(".work [data-members]").filter((box) => open.includes(boxKey(box))).forEach((box) => { box.open = true; });
  showChosen();
  await tell("refreshed");
  if (focused) select(cards().find((card) => numberOf(card) === desk.current));
});

let acting = false;

export const act = (verb, body) => busy(async () => {
  acting = true;
  try {
    const { event } = await send("POST", `/api/windows/${desk.window}/${verb}`, { ...body, version: version(), person: personName() });
    desk.rows.clear();
    desk.clusters.clear();
    say(verb === "undo" ? `Undone: ${event.about.what}.` : `Done: ${verb}. U undoes it.`);
    if (body.name) remember(body.name);
  } catch (problem) {
    say(problem.message, true);
    if (problem.status !== 409) return;
  } finally {
    acting = false;
  }
  const before = desk.current;
  await refresh();
  select(cards().find((card) => numberOf(card) === before) || cards()[0]);
});

function remember(name) {
  for (const list of [$("#class-names"), $("#dialog-known select")]) {
    if ([...list.children].some((option) => option.value === name)) continue;
    list.append(new Option(list.id === "class-names" ? "" : name, name));
  }
}

// Show changes of other people, unless the person is about to act.
export async function showOthersChanges() {
  if (!desk.window || $("dialog[open]") || acting) return;
  const response = await fetch(`/api/windows/${desk.window}/events?after=${version()}`).catch(() => null);
  if (response?.ok && (await response.json()).length && !acting) await refresh();
}

export const updateModel = (force = false) => attempt(async () => {
  await send("POST", `/api/windows/${desk.window}/update`, { force, person: personName() });
  say("The update is queued. You can go on meanwhile.");
  soon();
  await showUpdate();
});

export const showUpdate = () => Promise.all(["update", "next"].map((name) => put($(`#${name}`), `/windows/${desk.window}/section/${name}`)));
