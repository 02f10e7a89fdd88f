// The changing part of the page comes whole from the server; buttons ask for what an action needs,
// and for the token once.
"use strict";
const fleet = document.getElementById("fleet");
const state = document.getElementById("state");
const dialog = document.getElementById("ask");

// `tidegate dev` and `demo` print an address with the token behind its #.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname);
}

function show(html) {
  const focused = document.activeElement && document.activeElement.dataset.key;
  const open = new Map();
  for (const it of fleet.querySelectorAll("details[data-key]")) open.set(it.dataset.key, it.open);
  const scrolled = [...fleet.querySelectorAll(".scroll")].map((it) => it.scrollLeft);
  fleet.innerHTML = html;
  for (const it of fleet.querySelectorAll("details[data-key]")) {
    if (open.has(it.dataset.key)) it.open = open.get(it.dataset.key);
  }
  fleet.querySelectorAll(".scroll").forEach((it, at) => { it.scrollLeft = scrolled[at] || 0; });
  if (focused) {
    const again = fleet.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (again) again.focus({ preventScroll: true });
  }
}

const events = new EventSource("/events");
events.onmessage = (event) => {
  // What somebody selects or reads in a menu stays under their hand.
  if (!String(getSelection())) show(event.data);
  state.textContent = "live";
};
events.onerror = () => {
  state.textContent = "no connection: what is shown is old";
};

let wanted = null;

function ask(button) {
  wanted = button.dataset;
  const fields = (wanted.ask || "").split(" ");
  if (!sessionStorage.getItem("token")) fields.push("token");
  for (const field of dialog.querySelectorAll("[data-field]")) {
    field.hidden = !fields.includes(field.dataset.field);
  }
  const lengths = dialog.querySelector("[name=for]");
  for (const it of lengths.options) {
    it.hidden = it.disabled =
      wanted.action === "pause" && Number(it.value) > Number(lengths.dataset.longestPause);
  }
  dialog.querySelector("form").reset();
  dialog.querySelector("[name=value]").value = wanted.value || "";
  document.getElementById("asked").textContent = button.getAttribute("aria-label");
  document.getElementById("refused").textContent = "";
  dialog.showModal();
}

async function act(form) {
  const token = sessionStorage.getItem("token") || form.token.value;
  const body = { action: wanted.action, why: form.why.value };
  if (wanted.model) body.model = wanted.model;
  if (wanted.batch) body.batch = wanted.batch;
  if (wanted.limit) body.limit = wanted.limit;
  if (wanted.limit) body.value = Number(form.value.value);
  if (form.for.value) body.seconds = Number(form.for.value);
  const answer = await fetch("/actions", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  if (answer.ok) {
    sessionStorage.setItem("token", token);
    state.textContent = "done";
    dialog.close();
    return;
  }
  if (answer.status === 401) {
    sessionStorage.removeItem("token");
    dialog.querySelector("[data-field=token]").hidden = false;
  }
  document.getElementById("refused").textContent = await answer.text();
}

if (dialog) {
  fleet.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    if (button) ask(button);
  });
  dialog.querySelector("[value=no]").addEventListener("click", () => dialog.close());
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    act(event.target.elements).catch((error) => {
      document.getElementById("refused").textContent = String(error);
    });
  });
}
