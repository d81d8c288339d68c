"use strict";
// The console's script: sends the changes of people, and replaces the sections of the page that change.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// ------------------------------------------------------------------ talking to the server

const person = $("#person");
if (person) {
  person.value = localStorage.getItem("cilf-person") || "";
  person.addEventListener("change", () => localStorage.setItem("cilf-person", person.value.trim()));
}
const personName = () => (person ? person.value.trim() : "");

async function send(method, path, body, headers = { "Content-Type": "application/json" }) {
  const response = await fetch(path, {
    method,
    headers: body instanceof FormData ? undefined : headers,
    body: body instanceof FormData || body instanceof Blob || body === undefined ? body : JSON.stringify(body),
  });
  const content = await response.json().catch(() => ({}));
  if (response.ok) return content;
  const problem = new Error(explain(content, response.status));
  problem.status = response.status;
  throw problem;
}

function explain(content, status) {
  if (Array.isArray(content.detail)) return content.detail.map((one) => `${one.loc.at(-1)}: ${one.msg}`).join("; ");
  const events = (content.events || []).map((one) => `${one.person || "somebody"}: ${one.verb} ${(one.about.clusters || []).join(", ")} ${one.about.name || ""}`.trim());
  return (content.detail || `The server answered ${status}.`) + (events.length ? ` (${events.join("; ")})` : "");
}

let fading;
function say(text, problem = false) {
  const toast = $("#toast");
  toast.textContent = text;
  toast.classList.toggle("problem", problem);
  toast.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { toast.hidden = true; }, problem ? 9000 : 4000);
}

const attempt = (work) => work().catch((problem) => say(problem.message, true));

async function put(target, path) {
  const response = await fetch(path);
  if (response.ok) target.innerHTML = await response.text();
}

// ------------------------------------------------------------------ jobs

let active = null; // ids of the active jobs at the last request; null before the first
let timer;
const later = (milliseconds) => { clearTimeout(timer); timer = setTimeout(watch, milliseconds); };

// Request the jobs soon, as changed: a short job may begin and end between two requests.
function soon() { active = "?"; later(300); }

async function watch() {
  let jobs = [];
  try {
    const response = await fetch("/api/jobs?active=true");
    if (response.ok) jobs = await response.json();
  } catch { later(3000); return; }
  const bar = $("#jobs"), now = jobs.map((job) => job.id).join();
  bar.replaceChildren(...jobs.slice(0, 1).map((job) => {
    const line = document.createElement("span");
    line.textContent = `${job.kind}: ${job.status === "queued" ? "waits" : job.stage || "starting"}${jobs.length > 1 ? ` (+${jobs.length - 1})` : ""} `;
    if (job.total) {
      const progress = document.createElement("progress");
      progress.max = job.total;
      progress.value = job.done;
      progress.setAttribute("aria-label", `Progress of ${job.kind}`);
      line.append(progress);
    }
    return line;
  }));
  const ended = active === null ? !jobs.length && $(".progress") !== null : active !== now;
  active = now;
  if (ended || jobs.length) await jobsChanged(ended);
  await othersChanged();
  later(jobs.length ? 700 : 3000);
}

// Show changes of other people, unless the person is about to act.
async function othersChanged() {
  if (!desk.window || $("dialog[open]") || acting) return;
  const response = await fetch(`/api/windows/${desk.window}/events?after=${version()}`).catch(() => null);
  if (response?.ok && (await response.json()).length && !acting) await refresh();
}

async function jobsChanged(ended) {
  if ($("#windows")) {
    if (ended && active === "" && $("form[data-post='/api/model/fit']")) { location.reload(); return; }
    await put($("#windows"), "/section/windows");
  }
  if ($("[data-waiting]") && ended) { setTimeout(() => location.reload(), 500); return; }
  if ($("#update")) await put($("#update"), `/windows/${desk.window}/section/update`);
  if (ended && active === "" && document.body.dataset.page === "classes") location.reload();
}

// ------------------------------------------------------------------ forms

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.post) {
    event.preventDefault();
    attempt(async () => {
      const values = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
      await send("POST", form.dataset.post, values);
      form.reset();
      say("The job is queued.");
      soon();
    });
  } else if (form.dataset.upload) {
    event.preventDefault();
    const button = $("button", form);
    button.disabled = true;
    attempt(async () => {
      await send("POST", form.dataset.upload, new FormData(form));
      form.reset();
      say("The files are uploaded and the job is queued.");
      soon();
    }).finally(() => { button.disabled = false; });
  } else if (form.dataset.rename !== undefined) {
    event.preventDefault();
    attempt(async () => {
      const version = Number($(".classes-list").dataset.version);
      await send("POST", "/api/classes/rename", { old: form.dataset.rename, new: $("input", form).value, version, person: personName() });
      location.reload();
    });
  } else if (form.id === "import") {
    event.preventDefault();
    attempt(async () => {
      const file = $("input", form).files[0];
      const format = file.name.endsWith(".json") ? "label-studio" : file.name.endsWith(".jsonl") ? "jsonl" : "csv";
      const query = new URLSearchParams({ format, person: personName() });
      const imported = await send("POST", `/api/windows/${desk.window}/labels?${query}`, file, { "Content-Type": "application/octet-stream" });
      form.reset();
      say(`${imported.labels} labels imported.`);
      await refresh();
    });
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { postButton, undo, decide, rollback } = button.dataset;
  if (postButton) attempt(async () => {
    const made = await send("POST", postButton, postButton.endsWith("/undo") ? { person: personName() } : undefined);
    if (made.id) location.href = `/windows/${made.id}`; else location.reload();
  });
  if (rollback) attempt(async () => {
    await send("POST", "/api/model/rollback", { version: Number(rollback) });
    say("The rollback is queued.");
    soon();
  });
  if (decide) attempt(async () => {
    await send("POST", decide);
    say(decide.endsWith("keep") ? "Accepted." : "The rollback is queued.");
    soon();
    await put($("#update"), `/windows/${desk.window}/section/update`);
  });
  if (undo) act("undo", { event: Number(undo) });
  if (button.dataset.updateAnyway !== undefined) updateModel(true);
  if (button.dataset.more !== undefined) more(button);
  if (button.dataset.verb) runVerb(button);
  if (button.dataset.action) ACTIONS[button.dataset.action]();
  if (button.classList.contains("thumb")) toggleRow(button);
});

document.addEventListener("toggle", (event) => {
  const box = event.target;
  if (box.dataset.members !== undefined && box.open && !$(".members", box).childElementCount) load(box, 0);
}, true);

async function load(box, start) {
  const query = new URLSearchParams({ cluster: box.dataset.cluster, start });
  if (box.dataset.label) query.set("label", box.dataset.label);
  const page = document.createElement("div");
  await put(page, `/windows/${desk.window}/section/members?${query}`);
  $(".members", box).append(...page.childNodes);
  showChosenRows();
}

function more(button) {
  const box = button.closest("[data-members]");
  button.remove();
  load(box, Number(button.dataset.start));
}

// ------------------------------------------------------------------ a window

const desk = { window: null, rows: new Set(), clusters: new Set(), current: null };
let map;
const cards = () => $$("#clusters .cluster-card");
const numberOf = (card) => Number(card.dataset.cluster);
const version = () => Number($("#clusters .clusters").dataset.version);

function openDesk() {
  desk.window = Number($(".desk").dataset.window);
  const hover = $("#hover"), texts = $(".desk").dataset.form === "texts";
  let shown = null; // the row under the pointer
  const place = (x, y) => {
    hover.style.left = `${Math.max(0, Math.min(x + 14, map.canvas.clientWidth - hover.offsetWidth))}px`;
    hover.style.top = `${y + 14}px`;
  };
  map = new WindowMap($("#map"), hover, {
    onHover(row, x, y) {
      const { cluster, label, labels } = map.data;
      const line = document.createElement("span");
      line.textContent = cluster[row] ? `cluster ${cluster[row]}, nearest to ${labels[label[row]]}` : `known: ${labels[label[row]]}`;
      if (row === shown && !hover.hidden) { place(x, y); return; }
      shown = row;
      hover.replaceChildren(line);
      if (texts) attempt(async () => {
        const { text } = await send("GET", `/api/windows/${desk.window}/instances/${row}`);
        if (row === shown) line.textContent += `: ${text}`;
      });
      else {
        const image = document.createElement("img");
        image.src = `/api/windows/${desk.window}/thumbs/${row}.png`;
        image.alt = "";
        image.className = $(".desk").dataset.form;
        hover.prepend(image);
      }
      hover.hidden = false;
      place(x, y);
    },
    onChoose(rows, add) {
      if (!add) desk.rows.clear();
      rows.forEach((row) => desk.rows.add(row));
      showChosenRows();
    },
  });
  drawMap();
  select(cards()[0], false);
  $("#strategy").addEventListener("change", () => put($("#queries"), queriesPath()));
  document.addEventListener("change", (event) => {
    if (event.target.id === "budget") attempt(async () => {
      await send("PUT", `/api/windows/${desk.window}/budget`, { budget: Number(event.target.value) });
      await put($("#queries"), queriesPath());
    });
    const card = event.target.closest(".cluster-card");
    if (card && event.target.type === "checkbox") chooseCluster(card, event.target.checked);
  });
  document.addEventListener("focusin", (event) => {
    const card = event.target.closest(".cluster-card");
    if (card) select(card, false);
  });
}

const queriesPath = () => `/windows/${desk.window}/section/queries?strategy=${$("#strategy").value}`;

async function drawMap() {
  const response = await fetch(`/api/windows/${desk.window}/map`);
  if (response.ok) { map.show(await response.json()); showChosenRows(); }
}

function select(card, focus = true) {
  if (!card) return;
  desk.current = numberOf(card);
  if (focus) card.focus();
  showStatus();
}

function chooseCluster(card, chosen) {
  if (chosen) desk.clusters.add(numberOf(card)); else desk.clusters.delete(numberOf(card));
  showChosenClusters();
}

function toggleRow(button) {
  const row = Number(button.dataset.row);
  if (desk.rows.has(row)) desk.rows.delete(row); else desk.rows.add(row);
  showChosenRows();
}

function showChosenRows() {
  $$(".thumb").forEach((thumb) => thumb.setAttribute("aria-pressed", desk.rows.has(Number(thumb.dataset.row))));
  if (map && map.data) map.choose(desk.rows);
  showStatus();
}

function showChosenClusters() {
  cards().forEach((card) => {
    const chosen = desk.clusters.has(numberOf(card));
    card.classList.toggle("chosen", chosen);
    $("input[type=checkbox]", card).checked = chosen;
  });
  showStatus();
}

function showStatus() {
  const clusters = targets(), title = clusters.length ? `cluster ${clusters.join(", ")}` : "";
  $("#chosen").textContent = desk.rows.size ? `${plural([...desk.rows])} chosen` : title;
}

// The clusters of a verb: the chosen ones in their order, else the one in focus.
const targets = () => (desk.clusters.size ? [...desk.clusters] : desk.current ? [desk.current] : []);

// The page is busy until all its sections are up to date.
let changing = 0;
async function busy(work) {
  $(".desk").setAttribute("aria-busy", ++changing > 0);
  try { await work(); } finally { $(".desk").setAttribute("aria-busy", --changing > 0); }
}

const refresh = () => busy(async () => {
  const focused = document.activeElement?.closest("#clusters");
  const key = (box) => `${box.dataset.cluster} ${box.dataset.label || ""}`;
  const open = $$(".work [data-members][open]").map(key);
  const path = `/windows/${desk.window}/section/`;
  await Promise.all([put($("#clusters"), `${path}clusters`), put($("#known"), `${path}known`), put($("#queries"), queriesPath()), put($("#history"), `${path}history`), put($("#update"), `${path}update`), drawMap()]);
  const there = new Set(cards().map(numberOf));
  desk.clusters = new Set([...desk.clusters].filter((cluster) => there.has(cluster)));
  if (!there.has(desk.current)) desk.current = cards().length ? numberOf(cards()[0]) : null;
  $$(".work [data-members]").filter((box) => open.includes(key(box))).forEach((box) => { box.open = true; });
  showChosenClusters();
  showChosenRows();
  if (focused) select(cards().find((card) => numberOf(card) === desk.current));
});

let acting = false;
const act = (verb, body) => busy(async () => {
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
    const option = document.createElement("option");
    option.value = name;
    if (list.id !== "class-names") option.textContent = name;
    list.append(option);
  }
}

async function updateModel(force = false) {
  await attempt(async () => {
    await send("POST", `/api/windows/${desk.window}/update`, { force, person: personName() });
    say("The update is queued. You can go on meanwhile.");
    soon();
    await put($("#update"), `/windows/${desk.window}/section/update`);
  });
}

// Request a name, a known class or a target; null if the person cancels.
function openDialog(kind, title, text) {
  const dialog = $("#dialog");
  $("#dialog-title").textContent = title;
  $("#dialog-text").textContent = text;
  const fields = { name: $("#dialog-name"), known: $("#dialog-known"), target: $("#dialog-target") };
  for (const [name, label] of Object.entries(fields)) label.hidden = name !== kind;
  const field = $("input, select", fields[kind]);
  if (kind === "name") field.value = "";
  if (kind === "target") {
    const clusters = cards().map((card) => [String(numberOf(card)), `cluster ${numberOf(card)} ${$(".title", card).textContent.trim()}`]);
    field.replaceChildren(...[["new", "a new cluster"], ...clusters, ["known", "the known instances"]].map(([value, title]) => new Option(title, value)));
  }
  dialog.returnValue = "";
  dialog.showModal();
  field.focus();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "ok" && field.value.trim() ? field.value.trim() : null), { once: true });
  });
}
$("#dialog-cancel")?.addEventListener("click", () => $("#dialog").close(""));

const plural = (rows) => `${rows.length} ${rows.length === 1 ? "instance" : "instances"}`;

// The request of a verb, from the attributes of its button; null if something is missing.
function requestOf({ verb, takes, least, forRows }) {
  const rows = [...desk.rows], clusters = targets(), title = `cluster ${clusters.join(", ")}`;
  if (takes === "rows" || (forRows && rows.length)) {
    if (!rows.length) return refuse("Choose instances first: click on them, or draw a line around them on the map.");
    return { verb: takes === "rows" ? verb : forRows, subject: plural(rows), body: { rows } };
  }
  if (takes === "cluster" && rows.length) {
    const cluster = map.data.cluster[rows[0]];
    if (!cluster || rows.some((row) => map.data.cluster[row] !== cluster)) return refuse(`Choose instances of one novel cluster to ${verb} them.`);
    return { verb, subject: plural(rows), body: { cluster, rows } };
  }
  if (rows.length && !desk.clusters.size) return refuse(`Instances are chosen, but ${verb} needs clusters: choose clusters, or release the instances (Esc).`);
  if (!clusters.length) return refuse("Choose a cluster first.");
  if (takes === "cluster") return { verb, subject: title, body: { cluster: clusters[0] } };
  if (clusters.length < Number(least)) return refuse(`Choose ${least} or more clusters to ${verb} (Space).`);
  return { verb, subject: title, body: { clusters } };
}

function refuse(text) { say(text, true); return null; }

async function runVerb(button) {
  const request = requestOf(button.dataset), { dialog, title } = button.dataset;
  if (!request) return;
  const { verb, subject, body } = request;
  if (dialog) {
    const value = await openDialog(dialog, `${title}: ${subject}`, button.title);
    if (!value) return;
    if (dialog === "target") body.to = /^\d+$/.test(value) ? Number(value) : value;
    else body.name = value;
  }
  await act(verb, body);
}

async function answerQuery() {
  const first = $("#queries .thumb");
  if (!first) { say("There is no query."); return; }
  desk.rows = new Set([Number(first.dataset.row)]);
  showChosenRows();
  await runVerb($("[data-verb=name]"));
}

const ACTIONS = { undo: () => act("undo", {}), update: () => updateModel(), help: () => $("#help").showModal() };

function runKey(key) {
  if (key === "q") { answerQuery(); return true; }
  const button = $$(".verbs button").find((one) => one.getAttribute("aria-keyshortcuts") === key);
  button?.click();
  return Boolean(button);
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (document.body.dataset.page === "classes" && event.key.toLowerCase() === "u") { $("[data-post-button]").click(); return; }
  if (!desk.window) return;
  if (runKey(event.key.toLowerCase())) { event.preventDefault(); return; }
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
    desk.rows.clear(); desk.clusters.clear(); showChosenClusters(); showChosenRows();
  }
});

if ($(".desk")) openDesk();
if ($("#jobs")) watch();
