// The jobs of the worker: their progress, the time left, and what changes when one ends.

import { $, attempt, make, say } from "./dom.js";
import { put, send } from "./server.js";

const listeners = []; // called after each request for jobs: (ended) => promise
let active = null; // ids of the active jobs at the last request; null before the first
let timer;
let opening = null; // the window to open when its detection is done
const starts = new Map(); // "job stage" -> time and step at which it was first seen

const later = (milliseconds) => { clearTimeout(timer); timer = setTimeout(watch, milliseconds); };

export const onPoll = (listener) => listeners.push(listener);

// Request the jobs soon, as changed: a short job may begin and end between two requests.
export function soon() { active = "?"; later(300); }

// Open a window as soon as its detection is done.
export function openWhenDone(window) { opening = window; soon(); }

export async function watch() {
  let jobs = [];
  try {
    const response = await fetch("/api/jobs?active=true");
    if (response.ok) jobs = await response.json();
  } catch { later(3000); return; }
  const now = jobs.map((job) => job.id).join();
  showFirst(jobs);
  const ended = active === null ? !jobs.length && $(".progress") !== null : active !== now;
  active = now;
  if (ended || jobs.length) await jobsChanged(ended, jobs);
  for (const listener of listeners) await listener(ended);
  later(jobs.length ? 700 : 3000);
}

// The first job. Its button stays the same element, so that a click is not lost.
function showFirst(jobs) {
  const [job] = jobs, box = $("#jobs");
  if (!job) { box.replaceChildren(); return; }
  const line = describeJob(job, jobs.length - 1), button = $(`[data-cancel="${job.id}"]`, box);
  if (button) box.firstChild.replaceWith(line); else box.replaceChildren(line, cancelButton(job));
}

function cancelButton(job) {
  const button = make("button", { type: "button", className: "small" }, "Cancel");
  button.dataset.cancel = job.id;
  button.setAttribute("aria-label", `Cancel ${job.kind}`);
  return button;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-cancel]");
  if (button) attempt(async () => {
    await send("POST", `/api/jobs/${button.dataset.cancel}/cancel`);
    button.disabled = true;
    say("The job ends as soon as it can.");
    soon();
  });
});

// Wait for a job. Throws its problem if it does not do what it should.
export async function waitForJob(number) {
  say("The job is queued.");
  soon();
  for (;;) {
    const job = await send("GET", `/api/jobs/${number}`);
    if (job.status === "done") return job;
    if (job.problem) throw new Error(job.problem);
    await new Promise((done) => { setTimeout(done, 300); });
  }
}

function describeJob(job, others) {
  const step = job.status === "queued" ? "waits" : job.stage || "starting";
  const left = estimateLeft(job);
  const line = make("span", {}, `${job.kind}: ${step}${left ? `, ${left}` : ""}${others ? ` (+${others})` : ""} `);
  if (job.total > 1) {
    const progress = make("progress", { max: job.total, value: job.done });
    progress.setAttribute("aria-label", `Progress of ${job.kind}`);
    line.append(progress);
  }
  return line;
}

// The time left in this stage, from the speed of its steps so far.
function estimateLeft(job) {
  if (job.status !== "running" || job.total < 2) return "";
  const key = `${job.id} ${job.stage}`;
  if (!starts.has(key)) starts.set(key, { time: Date.now(), done: job.done });
  const { time, done } = starts.get(key), seconds = (Date.now() - time) / 1000;
  if (job.done <= done || seconds < 1) return "";
  const left = Math.ceil(((job.total - job.done) * seconds) / (job.done - done));
  return left < 60 ? `about ${left} s left` : `about ${Math.ceil(left / 60)} min left`;
}

async function jobsChanged(ended, jobs) {
  if (opening && ended && !jobs.some((job) => job.window === opening)) {
    const response = await fetch(`/api/windows/${opening}`);
    const { status } = response.ok ? await response.json() : {};
    if (status === "done") { location.href = `/windows/${opening}`; return; }
    if (status === "failed") opening = null;
  }
  if ($("#windows")) {
    if (ended && active === "" && !opening && $("[data-waits-for-model]")) { location.reload(); return; }
    await Promise.all(["windows", "next"].map((name) => put($(`#${name}`), `/section/${name}`)));
  }
  if ($("[data-waiting]") && ended) { setTimeout(() => location.reload(), 500); return; }
  if (ended && active === "" && document.body.dataset.page === "classes") location.reload();
}
