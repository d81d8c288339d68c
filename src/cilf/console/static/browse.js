// Choosing data: folders of the server's machine, files that are dropped, the sample project.

import { $, $$, attempt, count, make, say } from "./dom.js";
import { onPoll, openWhenDone } from "./jobs.js";
import { send } from "./server.js";

let field = null; // the field that gets the path
let folder = null; // the folder that is listed

async function list(path = "") {
  folder = await send("GET", `/api/folders?${new URLSearchParams({ path })}`);
  $("#browse-path").textContent = folder.path || "Folders that may be read";
  $("#browse-up").disabled = folder.parent === null;
  $("#browse-use").disabled = !folder.path;
  const entries = [...folder.folders.map(makeFolder), ...folder.files.map(makeFile)];
  const images = folder.n_images ? [make("li", { className: "soft", textContent: count(folder.n_images, "image") })] : [];
  $("#browse-list").replaceChildren(...entries, ...images);
  if (!entries.length && !images.length) $("#browse-list").append(make("li", { className: "soft", textContent: "There are no folders, tables or images here." }));
}

function makeFolder({ name, path, n_images: images, n_folders: folders }) {
  const parts = [images && count(images, "image"), folders && count(folders, "folder")].filter(Boolean);
  const open = make("button", { type: "button", className: "small", textContent: "Open", onclick: () => attempt(() => list(path)) });
  open.setAttribute("aria-label", `Open ${name}`);
  const title = make("span", {}, make("strong", { textContent: name }), make("span", { className: "soft", textContent: ` ${parts.join(", ")}` }));
  return make("li", {}, makeUse(name, path), title, open);
}

function makeFile({ name, path }) {
  return make("li", {}, makeUse(name, path), make("span", { textContent: name }));
}

function makeUse(name, path) {
  const button = make("button", { type: "button", className: "small", textContent: "Use", onclick: () => use(path) });
  button.setAttribute("aria-label", `Use ${name}`);
  return button;
}

function use(path) {
  field.value = path;
  $("#browse").close();
  $("button[type=submit]", field.form).focus();
}

export function openBrowse() {
  $$("[data-browse]").forEach((button) => button.addEventListener("click", () => attempt(async () => {
    field = button.form.elements[button.dataset.browse];
    await list();
    $("#browse").showModal();
  })));
  $("#browse-up").addEventListener("click", () => attempt(() => list(folder.parent)));
  $("#browse-use").addEventListener("click", () => use(folder.path));
  $("#browse-close").addEventListener("click", () => $("#browse").close());
  $$("[data-drop]").forEach(takeDrops);
  onPoll(fillChoices);
  $("[data-sample]")?.addEventListener("click", () => attempt(async () => {
    openWhenDone((await send("POST", "/api/sample")).id);
    say("The sample project starts: a model is fitted, and its window opens by itself.");
  }));
}

// The learners and backbones, which the server knows when its worker has started.
async function fillChoices() {
  const fields = $$("select[name=learner]");
  if (!fields.length || fields[0].options.length > 1) return;
  const { learners, backbones } = await send("GET", "/api/model/choices");
  fields.forEach((one) => one.replaceChildren(...learners.map((name) => new Option(name))));
  $$("select[name=backbone]").forEach((one) => one.replaceChildren(...backbones.map((name) => new Option(name, name === "auto" ? "" : name))));
}

function takeDrops(form) {
  const mark = (event) => { event.preventDefault(); form.classList.toggle("dropping", event.type === "dragover"); };
  form.addEventListener("dragover", mark);
  form.addEventListener("dragleave", mark);
  form.addEventListener("drop", (event) => {
    mark(event);
    $("input[type=file]", form).files = event.dataTransfer.files;
  });
}
