// The dialog of the verbs. It shows the pictures that it is about.

import { $ } from "./dom.js";
import { cards, numberOf, titleOf } from "./desk.js";

// Request a name, a known class, a target or a person; null if the person cancels.
export function openDialog(kind, title, text, pictures) {
  const dialog = $("#dialog");
  $("#dialog-title").textContent = title;
  $("#dialog-text").textContent = text;
  $("#dialog-pictures").replaceChildren(...pictures);
  const fields = { name: $("#dialog-name"), known: $("#dialog-known"), target: $("#dialog-target"), person: $("#dialog-person") };
  for (const [name, label] of Object.entries(fields)) label.hidden = name !== kind;
  const field = $("input, select", fields[kind]);
  if (kind === "name" || kind === "person") field.value = "";
  if (kind === "target") field.replaceChildren(...listTargets().map(([value, shown]) => new Option(shown, value)));
  dialog.returnValue = "";
  dialog.showModal();
  field.focus();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      const value = field.value.trim(), isAnswer = dialog.returnValue === "ok" && (value || kind === "person");
      done(isAnswer ? value : null);
    }, { once: true });
  });
}

function listTargets() {
  const clusters = cards().map((card) => [String(numberOf(card)), `cluster ${numberOf(card)} ${titleOf(card)}`]);
  return [["new", "a new cluster"], ...clusters, ["known", "the known instances"]];
}

$("#dialog-cancel")?.addEventListener("click", () => $("#dialog").close(""));

// Enter submits from a list, too.
$("#dialog")?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.tagName !== "SELECT") return;
  event.preventDefault();
  $("#dialog").close("ok");
});
