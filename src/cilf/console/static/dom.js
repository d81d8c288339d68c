// Small tools for the page: finding and making elements, short messages.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// An element with properties and children: make("button", { type: "button" }, "Close").
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

let fading;

export function say(text, problem = false) {
  const toast = $("#toast");
  toast.textContent = text;
  toast.classList.toggle("problem", problem);
  toast.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { toast.hidden = true; }, problem ? 9000 : 4000);
}

export const attempt = (work) => work().catch((problem) => say(problem.message, true));

export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// A value that the browser keeps, such as the size of pictures.
export const kept = {
  get: (name, otherwise) => localStorage.getItem(`cilf-${name}`) ?? otherwise,
  set: (name, value) => localStorage.setItem(`cilf-${name}`, value),
};
