// Forms and buttons that send one request each.

import { $, attempt, count, say } from "./dom.js";
import { act, desk, refresh } from "./desk.js";
import { openWhenDone, soon, waitForJob } from "./jobs.js";
import { personName, put, send } from "./server.js";

const JSON_FORMATS = { ".json": "label-studio", ".jsonl": "jsonl" };

async function post(form) {
  const values = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
  queued(form, await send("POST", form.dataset.post, values));
}

async function upload(form) {
  const button = $("button[type=submit]", form);
  button.disabled = true;
  try {
    queued(form, await send("POST", form.dataset.upload, new FormData(form)));
  } finally {
    button.disabled = false;
  }
}

function queued(form, made) {
  form.reset();
  say("The job is queued.");
  if (made.source !== undefined) openWhenDone(made.id); else soon();
}

async function rename(form) {
  const version = Number($(".classes-list").dataset.version);
  await send("POST", "/api/classes/rename", { old: form.dataset.rename, new: $("input", form).value, version, person: personName() });
  location.reload();
}

async function importLabels(form) {
  const file = $("input", form).files[0];
  const format = JSON_FORMATS[file.name.slice(file.name.lastIndexOf("."))] || "csv";
  const query = new URLSearchParams({ format, person: personName() });
  const { job } = await send("POST", `/api/windows/${desk.window}/labels?${query}`, file, { "Content-Type": "application/octet-stream" });
  form.reset();
  const { result } = await waitForJob(job);
  say(`${count(result.labels, "label")} imported.`);
  await refresh();
}

async function nameCluster(form) {
  const name = $("input", form).value.trim();
  if (name) await act("name", { clusters: [Number(form.dataset.nameCluster)], name });
}

const WORK = [
  ["[data-post]", post], ["[data-upload]", upload], ["[data-rename]", rename],
  ["[data-name-cluster]", nameCluster], ["#import", importLabels],
];

document.addEventListener("submit", (event) => {
  const form = event.target, work = WORK.find(([selector]) => form.matches(selector))?.[1];
  if (!work) return;
  event.preventDefault();
  attempt(() => work(form));
});

const keeps = (path) => path.endsWith("keep");
const confirmRollback = (version) => confirm(`Roll the model back to version ${version}? What later versions learned is not used any more. They are kept.`);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { postButton, decide, rollback } = button.dataset;
  if (postButton) attempt(async () => {
    const made = await send("POST", postButton, postButton.endsWith("/undo") ? { person: personName() } : undefined);
    if (made.id) location.href = `/windows/${made.id}`; else location.reload();
  });
  if (rollback && confirmRollback(rollback)) attempt(async () => {
    await send("POST", "/api/model/rollback", { version: Number(rollback) });
    say("The rollback is queued.");
    soon();
  });
  if (decide && (keeps(decide) || confirmRollback(button.dataset.version))) attempt(async () => {
    await send("POST", decide);
    say(keeps(decide) ? "Accepted." : "The rollback is queued.");
    soon();
    await put($("#update"), `/windows/${desk.window}/section/update`);
  });
});
