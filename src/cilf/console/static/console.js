"use strict";
// The console's own script: sends what people do, and puts changed parts of the page in place.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// ------------------------------------------------------------------ talking to the server

const person = $("#person");
if (person) {
  person.value = localStorage.getItem("cilf-person") || "";
  person.addEventListener("change", () => localStorage.setItem("cilf-person", person.value.trim()));
}
const who = () => (person ? person.value.trim() : "");

async function send(method, path, body, headers = { "Content-Type": "application/json" }) {
  const answer = await fetch(path, {
    method,
    headers: body instanceof FormData ? undefined : headers,
    body: body instanceof FormData || body instanceof Blob || body === undefined ? body : JSON.stringify(body),
  });
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  const problem = new Error(explain(told, answer.status));
  problem.status = answer.status;
  throw problem;
}

function explain(told, status) {
  if (Array.isArray(told.detail)) return told.detail.map((one) => `${one.loc.at(-1)}: ${one.msg}`).join("; ");
  const happened = (told.happened || []).map((one) => `${one.person || "somebody"}: ${one.verb} ${(one.about.groups || []).join(", ")} ${one.about.name || ""}`.trim());
  return (told.detail || `The server answered ${status}.`) + (happened.length ? ` (${happened.join("; ")})` : "");
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
  const answer = await fetch(path);
  if (answer.ok) target.innerHTML = await answer.text();
}

// ------------------------------------------------------------------ work under way

let active = null; // the jobs that were under way at the last look; null: nobody has looked yet
let timer;
const later = (milliseconds) => { clearTimeout(timer); timer = setTimeout(watch, milliseconds); };

// Look soon, and take it that something has changed: a short job may begin and end between two looks.
function soon() { active = "?"; later(300); }

async function watch() {
  let jobs = [];
  try {
    const answer = await fetch("/api/jobs?active=true");
    if (answer.ok) jobs = await answer.json();
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

// What other people did to this window comes in by itself, unless somebody is about to act.
async function othersChanged() {
  if (!desk.window || $("dialog[open]") || acting) return;
  const answer = await fetch(`/api/windows/${desk.window}/events?after=${version()}`).catch(() => null);
  if (answer?.ok && (await answer.json()).length && !acting) await refresh();
}

async function jobsChanged(ended) {
  if ($("#windows")) {
    if (ended && active === "" && $("form[data-post='/api/model/fit']")) { location.reload(); return; }
    await put($("#windows"), "/part/windows");
  }
  if ($("[data-waiting]") && ended) { setTimeout(() => location.reload(), 500); return; }
  if ($("#learn")) await put($("#learn"), `/windows/${desk.window}/part/learn`);
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
      say("It is being worked on.");
      soon();
    });
  } else if (form.dataset.upload) {
    event.preventDefault();
    const button = $("button", form);
    button.disabled = true;
    attempt(async () => {
      await send("POST", form.dataset.upload, new FormData(form));
      form.reset();
      say("The files are there; it is being worked on.");
      soon();
    }).finally(() => { button.disabled = false; });
  } else if (form.dataset.rename !== undefined) {
    event.preventDefault();
    attempt(async () => {
      const version = Number($(".classes-list").dataset.version);
      await send("POST", "/api/classes/rename", { old: form.dataset.rename, new: $("input", form).value, version, person: who() });
      location.reload();
    });
  } else if (form.id === "import") {
    event.preventDefault();
    attempt(async () => {
      const file = $("input", form).files[0];
      const format = file.name.endsWith(".json") ? "label-studio" : file.name.endsWith(".jsonl") ? "jsonl" : "csv";
      const query = new URLSearchParams({ format, person: who() });
      const taken = await send("POST", `/api/windows/${desk.window}/labels?${query}`, file, { "Content-Type": "application/octet-stream" });
      form.reset();
      say(`${taken.labels} labels taken over.`);
      await refresh();
    });
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { postButton, undo, decide, goBack } = button.dataset;
  if (postButton) attempt(async () => {
    const made = await send("POST", postButton, postButton.endsWith("/undo") ? { person: who() } : undefined);
    if (made.id) location.href = `/windows/${made.id}`; else location.reload();
  });
  if (goBack) attempt(async () => {
    await send("POST", "/api/model/rollback", { version: Number(goBack) });
    say("The model goes back.");
    soon();
  });
  if (decide) attempt(async () => {
    await send("POST", decide);
    say(decide.endsWith("keep") ? "Accepted." : "Rolled back.");
    soon();
    await put($("#learn"), `/windows/${desk.window}/part/learn`);
  });
  if (undo) act("undo", { event: Number(undo) });
  if (button.dataset.learnAnyway !== undefined) learn(true);
  if (button.dataset.more !== undefined) more(button);
  if (button.dataset.verb) verb(button.dataset.verb);
  if (button.classList.contains("thumb")) press(button);
});

document.addEventListener("toggle", (event) => {
  const box = event.target;
  if (box.dataset.members !== undefined && box.open && !$(".members", box).childElementCount) load(box, 0);
}, true);

async function load(box, start) {
  const query = new URLSearchParams({ group: box.dataset.group, start });
  if (box.dataset.label) query.set("label", box.dataset.label);
  const page = document.createElement("div");
  await put(page, `/windows/${desk.window}/part/members?${query}`);
  $(".members", box).append(...page.childNodes);
  pressed();
}

function more(button) {
  const box = button.closest("[data-members]");
  button.remove();
  load(box, Number(button.dataset.start));
}

// ------------------------------------------------------------------ a window

const desk = { window: null, rows: new Set(), groups: new Set(), current: null };
let map;
const cards = () => $$("#groups .group");
const numberOf = (card) => Number(card.dataset.group);
const version = () => Number($("#groups .groups").dataset.version);

function openDesk() {
  desk.window = Number($(".desk").dataset.window);
  const hover = $("#hover"), texts = $(".desk").dataset.form === "texts";
  let shown = null; // the row that is pointed at
  const place = (x, y) => {
    hover.style.left = `${Math.max(0, Math.min(x + 14, map.canvas.clientWidth - hover.offsetWidth))}px`;
    hover.style.top = `${y + 14}px`;
  };
  map = new WindowMap($("#map"), hover, {
    onHover(row, x, y) {
      const { group, label, labels } = map.data;
      const line = document.createElement("span");
      line.textContent = group[row] ? `group ${group[row]}, looks like ${labels[label[row]]}` : `known: ${labels[label[row]]}`;
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
      pressed();
    },
  });
  drawMap();
  select(cards()[0], false);
  $("#strategy").addEventListener("change", () => put($("#ask"), askPath()));
  document.addEventListener("change", (event) => {
    if (event.target.id === "budget") attempt(async () => {
      await send("PUT", `/api/windows/${desk.window}/budget`, { budget: Number(event.target.value) });
      await put($("#ask"), askPath());
    });
    const card = event.target.closest(".group");
    if (card && event.target.type === "checkbox") choose(card, event.target.checked);
  });
  document.addEventListener("focusin", (event) => {
    const card = event.target.closest(".group");
    if (card) select(card, false);
  });
}

const askPath = () => `/windows/${desk.window}/part/ask?strategy=${$("#strategy").value}`;

async function drawMap() {
  const answer = await fetch(`/api/windows/${desk.window}/map`);
  if (answer.ok) { map.show(await answer.json()); pressed(); }
}

function select(card, focus = true) {
  if (!card) return;
  desk.current = numberOf(card);
  if (focus) card.focus();
  status();
}

function choose(card, chosen) {
  if (chosen) desk.groups.add(numberOf(card)); else desk.groups.delete(numberOf(card));
  marked();
}

function press(button) {
  const row = Number(button.dataset.row);
  if (desk.rows.has(row)) desk.rows.delete(row); else desk.rows.add(row);
  pressed();
}

function pressed() {
  $$(".thumb").forEach((thumb) => thumb.setAttribute("aria-pressed", desk.rows.has(Number(thumb.dataset.row))));
  if (map && map.data) map.choose(desk.rows);
  status();
}

function marked() {
  cards().forEach((card) => {
    const chosen = desk.groups.has(numberOf(card));
    card.classList.toggle("chosen", chosen);
    $("input[type=checkbox]", card).checked = chosen;
  });
  status();
}

function status() {
  const groups = targets(), parts = [];
  if (desk.rows.size) parts.push(`${desk.rows.size} instances chosen`);
  else if (groups.length) parts.push(`group ${groups.join(", ")}`);
  $("#chosen").textContent = parts.join(" · ");
}

// The groups that a verb is about: those chosen, in the order they were, else the one in focus.
const targets = () => (desk.groups.size ? [...desk.groups] : desk.current ? [desk.current] : []);

// The window's parts are out of date until all of them have come.
let changing = 0;
async function busy(work) {
  $(".desk").setAttribute("aria-busy", ++changing > 0);
  try { await work(); } finally { $(".desk").setAttribute("aria-busy", --changing > 0); }
}

const refresh = () => busy(async () => {
  const focused = document.activeElement?.closest("#groups");
  const key = (box) => `${box.dataset.group} ${box.dataset.label || ""}`;
  const open = $$(".work [data-members][open]").map(key);
  const path = `/windows/${desk.window}/part/`;
  await Promise.all([put($("#groups"), `${path}groups`), put($("#known"), `${path}known`), put($("#ask"), askPath()), put($("#history"), `${path}history`), put($("#learn"), `${path}learn`), drawMap()]);
  const there = new Set(cards().map(numberOf));
  desk.groups = new Set([...desk.groups].filter((group) => there.has(group)));
  if (!there.has(desk.current)) desk.current = cards().length ? numberOf(cards()[0]) : null;
  $$(".work [data-members]").filter((box) => open.includes(key(box))).forEach((box) => { box.open = true; });
  marked();
  pressed();
  if (focused) select(cards().find((card) => numberOf(card) === desk.current));
});

let acting = false;
const act = (verb, body) => busy(async () => {
  acting = true;
  try {
    const { event } = await send("POST", `/api/windows/${desk.window}/${verb}`, { ...body, version: version(), person: who() });
    desk.rows.clear();
    desk.groups.clear();
    say(verb === "undo" ? `Taken back: ${event.about.what}.` : `Done: ${verb}. U takes it back.`);
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

async function learn(force = false) {
  await attempt(async () => {
    await send("POST", `/api/windows/${desk.window}/learn`, { force, person: who() });
    say("The model learns; go on meanwhile.");
    soon();
    await put($("#learn"), `/windows/${desk.window}/part/learn`);
  });
}

// Ask for a name, a known class or a target; null if the person thinks better of it.
function ask(kind, title, text = "") {
  const dialog = $("#dialog");
  $("#dialog-title").textContent = title;
  $("#dialog-text").textContent = text;
  const fields = { name: $("#dialog-name"), known: $("#dialog-known"), target: $("#dialog-target") };
  for (const [name, label] of Object.entries(fields)) label.hidden = name !== kind;
  const field = $("input, select", fields[kind]);
  if (kind === "name") field.value = "";
  if (kind === "target") {
    const groups = cards().map((card) => [String(numberOf(card)), `group ${numberOf(card)} ${$(".title", card).textContent.trim()}`]);
    field.replaceChildren(...[["new", "a new group"], ...groups, ["known", "the known (as the model took them)"]].map(([value, title]) => new Option(title, value)));
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

async function verb(name) {
  const rows = [...desk.rows], groups = targets();
  if (name === "help") { $("#help").showModal(); return; }
  if (name === "undo") { await act("undo", {}); return; }
  if (name === "learn") { await learn(); return; }
  if (name === "ask") {
    const first = $("#ask .thumb");
    if (!first) { say("There is nothing to ask."); return; }
    desk.rows = new Set([Number(first.dataset.row)]);
    pressed();
    await verb("name");
    return;
  }
  if (name === "move") {
    if (!rows.length) { say("Choose instances first: click on them, or draw around them on the map.", true); return; }
    const target = await ask("target", `Move ${plural(rows)}`);
    if (target) await act("move", { rows, to: /^\d+$/.test(target) ? Number(target) : target });
    return;
  }
  if (rows.length && (name === "name" || name === "into")) {
    const label = name === "name" ? await ask("name", `Name ${plural(rows)}`) : await ask("known", `${plural(rows)} of a known class`);
    if (label) await act("label", { rows, name: label });
    return;
  }
  if (rows.length && !desk.groups.size && name !== "split") { say(`Instances are chosen, and ${name} is about groups: choose groups, or let the instances go (Esc).`, true); return; }
  if (!groups.length) { say("Choose a group first.", true); return; }
  const title = `group ${groups.join(", ")}`;
  if (name === "name") {
    const label = await ask("name", `Name ${title}`, "A name that nobody knows yet makes a new class.");
    if (label) await act("name", { groups, name: label });
  } else if (name === "into") {
    const label = await ask("known", `Merge ${title} into a known class`);
    if (label) await act("into", { groups, name: label });
  } else if (name === "merge" && groups.length < 2) {
    say("Choose two or more groups to merge (Space).", true);
  } else if (name === "split") {
    const group = rows.length ? map.data.group[rows[0]] : groups[0];
    if (rows.some((row) => map.data.group[row] !== group) || !group) { say("Choose instances of one new group to split them off.", true); return; }
    await act("split", { group, rows });
  } else {
    await act(name, { groups });
  }
}

const KEYS = { n: "name", i: "into", m: "merge", s: "split", r: "reject", k: "skip", o: "reopen", v: "move", u: "undo", l: "learn", q: "ask", "?": "help" };

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (document.body.dataset.page === "classes" && event.key.toLowerCase() === "u") { $("[data-post-button]").click(); return; }
  if (!desk.window) return;
  const name = KEYS[event.key.toLowerCase()];
  if (name) { event.preventDefault(); verb(name); return; }
  const list = cards(), place = list.findIndex((card) => numberOf(card) === desk.current);
  const onCard = event.target.classList.contains("group") || event.target === document.body;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const focused = document.activeElement.closest(".group");
    const next = focused ? place + (event.key === "ArrowDown" ? 1 : -1) : place;
    select(list[Math.max(0, Math.min(list.length - 1, next))]);
  } else if (event.key === " " && onCard && list[place]) {
    event.preventDefault();
    choose(list[place], !desk.groups.has(desk.current));
  } else if (event.key === "Enter" && onCard && list[place]) {
    const box = $("details", list[place]);
    box.open = !box.open;
  } else if (event.key === "Escape") {
    desk.rows.clear(); desk.groups.clear(); marked(); pressed();
  }
});

if ($(".desk")) openDesk();
if ($("#jobs")) watch();
