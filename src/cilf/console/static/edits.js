// Forms that change one object of the server: a class, or a window of the list.
//
//   data-edit       method and path, such as "POST /api/classes/forget"
//   data-ask        the name of a field that the person is asked for, with the present value
//   data-question   what the person is asked
//   data-confirm    what the person has to confirm
//   data-anonymous  the request takes no name of a person
//
// A field with data-number is sent as a number. A job that the change starts is waited for.

import { $, $$, say } from "./dom.js";
import { waitForJob } from "./jobs.js";
import { personName, send } from "./server.js";

function readFields(form) {
  const valueOf = (field) => (field.dataset.number === undefined ? field.value : Number(field.value));
  const body = Object.fromEntries($$("[name]", form).map((field) => [field.name, valueOf(field)]));
  return form.dataset.anonymous === undefined ? { ...body, person: personName() } : body;
}

async function edit(form) {
  const { edit: route, ask, question, confirm: warning } = form.dataset;
  const [method, path] = route.split(" "), body = readFields(form);
  if (ask) {
    const value = prompt(question, body[ask]);
    if (value === null || !value.trim() || value.trim() === body[ask]) return;
    body[ask] = value.trim();
  }
  if (warning && !confirm(warning)) return;
  const button = $("button", form);
  button.disabled = true;
  try {
    const made = await send(method, path, body);
    if (made.job) await waitForJob(made.job);
    location.reload();
  } catch (problem) {
    say(problem.message, true);
    button.disabled = false;
  }
}

document.addEventListener("submit", (event) => {
  if (event.target.dataset.edit === undefined) return;
  event.preventDefault();
  edit(event.target);
});
