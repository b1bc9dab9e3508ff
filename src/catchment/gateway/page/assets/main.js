// The page: who is signed in, which view is shown, and what the gateway tells. All state is here; views only read it.

import { ask, listen } from "./api.js";
import { fill, h, say } from "./dom.js";
import { Fleet } from "./map.js";
import * as views from "./views.js";

const KEPT = 300;
const main = document.getElementById("main");
const OPERATOR = [["live", "Live"], ["report", "Report"], ["streams", "Streams"], ["plan", "Plan"], ["devices", "Devices"], ["health", "Health"], ["trials", "Break it"]];
const USER = [["report", "Report"], ["map", "Map"], ["devices", "Devices"]];

let state = null, shown = null, hush = () => {};

// -- dark and light: the system's word, until somebody says otherwise ---------------------------------------------------
const system = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const dark = (localStorage.getItem("theme") ?? (system.matches ? "dark" : "light")) === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  button.textContent = dark ? "☀" : "☾";
  button.setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
}
document.getElementById("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme();
});
system.addEventListener("change", theme);
theme();

// -- the door -------------------------------------------------------------------------------------------------------------
function door() {
  state = null;
  hush();
  document.getElementById("leave").hidden = true;
  fill(document.getElementById("who"));
  fill(document.getElementById("views"));
  const wrong = h("p", { class: "bad", role: "alert" });
  const name = h("input", { id: "name", name: "username", autocomplete: "username", required: true });
  const password = h("input", { id: "password", name: "password", type: "password", autocomplete: "current-password", required: true });
  const form = h("form", { class: "card" },
    h("div", {}, h("h1", {}, "Sign in"), h("p", { class: "quiet" }, "To see your own report; operators see the fleet.")),
    h("label", {}, "Name", name), h("label", {}, "Password", password), wrong, h("button", { class: "main", type: "submit" }, "Sign in"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    fill(wrong);
    try {
      await ask("session", { method: "POST", body: { name: name.value.trim(), password: password.value } });
      await enter();
    } catch (error) {
      fill(wrong, `${error.message[0].toUpperCase()}${error.message.slice(1)}. ${error.status === 429 ? error.fix : ""}`);
      password.select();
    }
  });
  fill(main, h("div", { class: "door" }, form));
  // Whoever started the demo was given a link with what the form needs; it goes no further than this form.
  const given = location.hash.match(/^#sign-in=([^:]+):(.+)$/);
  if (given) {
    history.replaceState(null, "", "/");
    [name.value, password.value] = [given[1], given[2]];
    form.requestSubmit();
  } else name.focus();
}

document.getElementById("leave").addEventListener("click", async () => {
  await ask("session", { method: "DELETE" }).catch(() => {});
  door();
});

// -- views ----------------------------------------------------------------------------------------------------------------
function show() {
  if (!state) return;
  const known = (state.account.role === "operator" ? OPERATOR : USER).filter(([name]) => name !== "trials" || state.now?.trials);
  const wanted = known.find(([name]) => `#${name}` === location.hash)?.[0] ?? (location.hash === "#trials" && state.account.role === "operator" ? "trials" : known[0][0]);
  fill(document.getElementById("views"), known.map(([name, title]) => h("a", { href: `#${name}`, "aria-current": name === wanted ? "page" : null }, title)));
  if (shown?.name !== wanted) {
    shown?.view.stop();
    shown = { name: wanted, view: views[wanted](state) };
    main.replaceChildren(shown.view.place);
    document.title = `${known.find(([name]) => name === wanted)?.[1] ?? "Break it"} · Catchment`;
  }
  shown.view.update();
}
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});

async function enter() {
  const account = await ask("session");
  shown?.view.stop();
  shown = null;
  state = { account, fleet: new Fleet(), charts: [], now: null, newest: -1, user: null };
  fill(document.getElementById("who"), account.role === "operator" ? `${account.name}` : account.name);
  document.getElementById("leave").hidden = false;
  hush();
  hush = listen({
    hello(said) { state.charts = said.charts; state.fleet = Object.assign(state.fleet, { devices: new Map(), isDemo: said.demo, version: state.fleet.version + 1 }); },
    now(said) {
      state.now = said;
      if (said.chart.at_ms && said.chart.at_ms !== state.charts.at(-1)?.at_ms) state.charts.push(said.chart);
      state.charts.splice(0, Math.max(0, state.charts.length - KEPT));
      show();
    },
    map(said) { state.fleet.take(said); },
    report(said) { state.newest = said.newest; show(); },
  }, (isBroken) => { document.getElementById("broken").hidden = !isBroken; });
  show();
  say(`Signed in as ${account.name}`);
}

ask("session").then((account) => (account.name ? enter() : door()), door);
