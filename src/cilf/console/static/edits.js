"use strict";
// Forms that change one object of the server: a class, or a window of the list.
//
//   data-edit       method and path, such as "POST /api/classes/forget"
//   data-ask        the name of a field that the person is asked for, with the present value
//   data-question   what the person is asked
//   data-confirm    what the person has to confirm
//
// A field with data-number is sent as a number. A job that the change starts is waited for.

(() => {
  const PAUSE = 300; // milliseconds between two requests for a job

  function tell(text, problem) {
    const toast = document.querySelector("#toast");
    toast.textContent = text;
    toast.classList.toggle("problem", problem);
    toast.hidden = false;
  }

  async function request(method, path, body) {
    const options = { method, headers: { "Content-Type": "application/json" } };
    if (body !== undefined) options.body = JSON.stringify(body);
    const response = await fetch(path, options);
    const content = await response.json().catch(() => ({}));
    if (response.ok) return content;
    const detail = Array.isArray(content.detail) ? content.detail.map((one) => one.msg).join("; ") : content.detail;
    throw new Error(detail || `The server answered ${response.status}.`);
  }

  function readFields(form) {
    const body = {};
    for (const field of form.querySelectorAll("[name]")) {
      body[field.name] = field.dataset.number === undefined ? field.value : Number(field.value);
    }
    const person = document.querySelector("#person");
    if (form.dataset.anonymous === undefined) body.person = person ? person.value.trim() : "";
    return body;
  }

  async function waitForJob(number) {
    tell("The job is queued.", false);
    for (;;) {
      const job = await request("GET", `/api/jobs/${number}`);
      if (job.status === "done") return;
      if (job.status === "failed") throw new Error(job.problem);
      await new Promise((done) => { setTimeout(done, PAUSE); });
    }
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
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const made = await request(method, path, body);
      if (made.job) await waitForJob(made.job);
      location.reload();
    } catch (problem) {
      tell(problem.message, true);
      button.disabled = false;
    }
  }

  document.addEventListener("submit", (event) => {
    if (event.target.dataset.edit === undefined) return;
    event.preventDefault();
    edit(event.target);
  });
})();
