// The views: each makes its part of the page once, and updates it when there is something new.

import { ask } from "./api.js";
import { columns, lines } from "./chart.js";
import { fill, h, say } from "./dom.js";
import { drawMap } from "./map.js";
import { steps, wires } from "./plan.js";
import { ago, bytes, clock, heading, instant, measured, number, span } from "./words.js";

const head = (title, text, more) => h("div", { class: "head" }, h("div", {}, h("h1", {}, title), text && h("p", {}, text)), more);
const tile = (title, [value, unit], more = "") =>
  h("div", { class: "tile" }, h("dt", {}, title), h("dd", {}, value, " ", unit && h("small", {}, unit), h("span", { class: "more" }, more)));
const series = (state, name) => state.charts.map((look) => [look.at_ms, look[name]]);
const chip = (kind, text) => h("span", { class: `chip ${kind}` }, text);

function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, heads.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
      h("tbody", {}, rows)));
}

export function live(state) {
  const tiles = h("dl", { class: "tiles" }), charts = h("div", { class: "stack" }), map = drawMap(state.fleet);
  const place = h("div", {}, head("Live", "Readings on their way from sensors to results, as they are this second."), tiles,
    h("div", { class: "live" }, map.place, charts));
  let drawn = 0;
  function update() {
    const now = state.now, look = state.charts.at(-1) ?? {};
    if (!now) return void fill(tiles, tile("Gateway", ["…", ""], "waiting for its first word"));
    const programs = Object.values(now.programs), running = programs.find((one) => one.state === "running");
    fill(tiles,
      tile("Devices here", [number(now.devices.seen), ""], `of ${number(now.devices.enrolled)} enrolled`),
      tile("Readings", [number(look.elements ?? 0), "/s"], `in ${number(look.uploads ?? 0)} uploads/s`),
      tile("Sent", [...bytes(look.bytes ?? 0).slice(0, 1), `${bytes(look.bytes ?? 0)[1]}/s`], "after policies and codec"),
      tile("Results", [number(look.given ?? 0), "/s"], running ? `${number(total(running.given))} in all` : `Spark: ${programs[0]?.state ?? "not there"}`),
      tile("Delay, p50", span(look.p50_ms), look.p95_ms === null || look.p95_ms === undefined ? "no results yet" : `p95 ${span(look.p95_ms).join(" ")}, upload to result`),
      tile("Backlog", bytes(look.behind_bytes ?? 0), look.waiting === null || look.waiting === undefined ? "in the log" : `and ${number(look.waiting)} readings on devices`));
    if (Date.now() - drawn < 1900 && charts.children.length) return;
    drawn = Date.now();
    fill(charts,
      lines("Readings", "per second", [["readings", series(state, "elements")]]),
      lines("From upload to result", "s", [["half of all", series(state, "p50_ms")], ["95 %", series(state, "p95_ms")]], { scale: 0.001 }),
      lines("Waiting in the log", "kB", [["behind", series(state, "behind_bytes")]], { scale: 0.001 }));
  }
  return { place, update, stop: map.stop };
}

const total = (counts) => Object.values(counts ?? {}).reduce((sum, one) => sum + one, 0);

export function map(state) {
  const drawn = drawMap(state.fleet);
  return { place: h("div", {}, head("Where you were", "Your devices, and how you moved."), drawn.place), update() {}, stop: drawn.stop };
}

export function report(state) {
  const body = h("div", { class: "stack" }), pick = h("select", { id: "user", "aria-label": "User" });
  const place = h("div", {},
    head("Report", "The results that went to a user's devices. Each user sees their own and nobody else's.",
      state.account.role === "operator" && h("div", { class: "pick" }, h("label", { for: "user" }, "User"), pick)), body);
  let asked = null, chosen = state.user ?? state.account.name, waiting = false;
  pick.addEventListener("change", () => { chosen = state.user = pick.value; load(); });
  async function load() {
    if (waiting) return;
    waiting = true;
    try {
      const found = await ask(`report?user=${encodeURIComponent(chosen)}`);
      if (state.account.role === "operator") {
        if (pick.options.length !== found.users.length) fill(pick, found.users.map((user) => h("option", { value: user }, user)));
        if (!found.users.includes(chosen) && found.users.length) { chosen = state.user = found.users[Math.min(3, found.users.length - 1)]; waiting = false; return load(); }
        pick.value = chosen;
      }
      fill(body, ...sections(found));
    } catch (error) {
      fill(body, h("section", { class: "card" }, h("p", {}, error.message), h("p", { class: "quiet" }, error.fix)));
    } finally { waiting = false; }
  }
  return { place, update() { if (asked !== state.newest) { asked = state.newest; load(); } }, stop() {} };
}

function sections(found) {
  const filled = found.streams.filter((one) => one.rows.length);
  if (!filled.length) return [h("section", { class: "card" }, h("h2", {}, "No results yet"), h("p", { class: "quiet" }, "A result comes when a window closes, or when a trip is over. The first take about a minute."))];
  const windowed = filled.find((one) => one.keep === "latest") ?? filled[0];
  const figures = numbers(windowed), last = windowed.rows.at(-1), closes = windowed.fields.findIndex((one) => one.name === "window_end");
  const made = [
    h("dl", { class: "tiles" }, figures.map(({ field, at }) => tile(heading(field.title), measured(last[at], field.unit), closes < 0 ? windowed.stream : `${windowed.stream}, to ${instant(last[closes])}`))),
    h("div", { class: "pair" }, figures.slice(0, 3).map(({ field, at }) => columns(heading(field.title), field.unit || "", windowed.rows.slice(-36).map((row) => [closes < 0 ? "" : instant(row[closes]).slice(6), row[at] ?? 0])))),
  ];
  for (const one of filled.filter((stream) => stream !== windowed)) {
    const shown = one.fields.map((field, at) => ({ field, at })).filter(({ field }) => !field.own && field.name !== "at");
    made.push(h("section", { class: "card" }, h("h2", {}, heading(one.stream)), h("p", { class: "quiet small" }, one.rows.length === 1 ? "One so far" : `The latest ${one.rows.length}, the newest first`),
      table(one.stream, shown.map(({ field }) => [heading(field.unit ? `${field.title}, ${field.unit}` : field.title), field.kind === "str" ? "" : "n"]),
        one.rows.slice(-20).reverse().map((row) => h("tr", {}, shown.map(({ field, at }) => h("td", { class: field.kind === "str" ? "" : "n" }, cell(row[at], field))))))));
  }
  return made;
}

const numbers = (stream) => stream.fields.map((field, at) => ({ field, at })).filter(({ field }) => !field.own && (field.kind === "float" || field.kind === "int"));
const cell = (value, field) => (value === null ? "–" : field.kind === "instant" ? instant(value) : typeof value === "number" ? number(value) : String(value));

export function streams(state) {
  const body = h("section", { class: "card" });
  const place = h("div", {}, head("Streams", "What devices would have sent, element by element, beside what their policies made of it: filtered, batched, encoded, compressed."), body);
  function update() {
    const found = state.now?.streams ?? [];
    if (!found.length) return void fill(body, h("p", { class: "quiet" }, "Nothing has come up yet."));
    const most = Math.max(...found.map((one) => one.plain_bytes), 1);
    fill(body, table("Streams", [["Stream", ""], ["Elements", "n"], ["Uploads", "n wide"], ["Before", "n"], ["After", "n"], ["Per element", "n wide"], ["Saved", ""], ["Given up", "n wide"]],
      found.map((one) => h("tr", {}, h("th", { scope: "row" }, one.stream), h("td", { class: "n" }, number(one.elements)), h("td", { class: "n wide" }, number(one.uploads)),
        h("td", { class: "n" }, bytes(one.plain_bytes).join(" ")), h("td", { class: "n" }, bytes(one.sent_bytes).join(" ")),
        h("td", { class: "n wide" }, one.elements ? `${number(one.sent_bytes / one.elements)} B` : "–"),
        h("td", {}, h("div", { class: "saved", role: "img", "aria-label": `${percent(one)} less` }, h("span", {}, h("i", { "width%": (100 * one.plain_bytes) / most })), h("span", { class: "after" }, h("i", { "width%": (100 * one.sent_bytes) / most })), h("small", { class: "quiet" }, `${percent(one)} less`))),
        h("td", { class: "n wide" }, number(one.lost + one.filtered))))),
      state.now.partial && h("p", { class: "quiet small" }, "The log is longer than what this page reads: counts are of what it has read."));
  }
  return { place, update, stop() {} };
}

const percent = (one) => `${number(Math.max(0, 100 * (1 - one.sent_bytes / Math.max(1, one.plain_bytes))))} %`;

export function plan(state) {
  const drawn = h("section", { class: "card plan" }), more = h("section", { class: "card" });
  const place = h("div", {}, head("Plan", "How the program was cut into parts, where they run, and what has passed between them."), h("div", { class: "stack" }, drawn, more));
  let plans = null;
  ask("plan").then((found) => {
    plans = found.plans;
    fill(more, h("h2", {}, "Steps"), h("p", { class: "quiet small" }, "As the author wrote them, after rewrites"), plans.flatMap(steps));
    update();
  }).catch((error) => fill(drawn, h("p", {}, error.message)));
  function update() {
    if (!plans || !state.now) return;
    if (!plans.length) return void fill(drawn, h("p", { class: "quiet" }, "No program has run here yet."));
    const look = state.charts.at(-1) ?? {}, said = state.now.programs[plans[0].program] ?? {};
    const up = Object.fromEntries(state.now.streams.map((one) => [one.stream, one.elements]));
    const down = {};
    for (const [name, count] of Object.entries(said.given ?? {})) down[name.split("/").at(-1)] = count;
    wires(drawn, plans[0], { up, down, behind: look.behind_bytes ?? 0, rates: { elements: look.elements ?? 0, given: look.given ?? 0 } });
  }
  return { place, update, stop() {} };
}

export function devices(state) {
  const body = h("section", { class: "card" }), find = h("input", { type: "search", id: "find", placeholder: "name or user", "aria-label": "Find a device" });
  const place = h("div", {}, head("Devices", state.account.role === "operator" ? "Whatever speaks the protocol: a phone, a vehicle, a sensor, a browser." : "Those that are enrolled as yours.", h("div", { class: "pick" }, find)), body);
  let found = null, asked = 0;
  find.addEventListener("input", draw);
  async function load() { found = await ask("devices").catch(() => found); draw(); }
  function draw() {
    if (!found) return;
    const wanted = find.value.trim().toLowerCase();
    const rows = found.devices.filter((one) => `${one.device} ${one.user}`.toLowerCase().includes(wanted));
    const kinds = {};
    for (const one of found.devices) kinds[one.kind] = (kinds[one.kind] ?? 0) + 1;
    fill(body, h("p", { class: "quiet small" }, Object.entries(kinds).map(([kind, n]) => `${number(n)} of kind ${kind}`).join(", ")),
      table("Devices", [["Device", ""], ["Kind", ""], ["User", ""], ["Mode", ""], ["State", ""], ["Heard", "n"]],
        rows.map((one) => {
          const last = state.fleet.devices.get(one.device)?.points.at(-1);
          const cut = state.now?.trials?.cut.includes(one.device);
          return h("tr", {}, h("th", { scope: "row" }, one.device), h("td", {}, one.kind), h("td", {}, one.user),
            h("td", {}, last?.how ? [h("span", { class: "dot", "data-mode": last.how }), last.how] : "–"),
            h("td", {}, cut ? chip("warn", "no network") : one.state === "here" ? chip("good", "here") : chip(one.state === "away" ? "" : "bad", one.state)),
            h("td", { class: "n" }, ago(one.heard_ms, found.now_ms)));
        })));
  }
  return { place, update() { if (Date.now() - asked > 2000) { asked = Date.now(); load(); } }, stop() {} };
}

export function health(state) {
  const tiles = h("dl", { class: "tiles" }), queries = h("section", { class: "card" }), errors = h("section", { class: "card" });
  const place = h("div", {}, head("Health", "What the gateway and the supervisor say of themselves."), tiles, h("div", { class: "stack" }, queries, errors));
  function update() {
    const now = state.now;
    if (!now) return;
    const programs = Object.values(now.programs);
    fill(tiles,
      tile("Gateway", [now.health.ready ? "ready" : "not ready", ""], now.health.gateway),
      tile("Log", [number(Object.keys(now.health.partitions).length), ""], `${Object.keys(now.health.partitions).length === 1 ? "partition" : "partitions"}, ${Object.values(now.health.partitions).join(", ")}`),
      tile("Disk", bytes(now.health.free_bytes), "free"),
      tile("Restarts", [number(programs.reduce((sum, one) => sum + (one.restarts ?? 0), 0)), ""], "of queries"),
      tile("Refused", [number(total(now.refused)), ""], Object.keys(now.refused).join(", ") || "nothing"));
    const rows = programs.flatMap((one) => Object.entries(one.queries ?? {}).map(([query, said]) => {
      const flow = one.flow?.[query];
      return h("tr", {}, h("th", { scope: "row" }, query), h("td", {}, chip(said === "running" ? "good" : said === "starting" ? "" : "warn", said.slice(0, 80))),
        h("td", { class: "n" }, flow ? span(flow.batch_ms).join(" ") : "–"), h("td", { class: "n" }, flow ? bytes(flow.behind_bytes).join(" ") : "–"));
    }));
    const delays = programs.flatMap((one) => Object.entries(one.latency ?? {}).map(([output, delay]) => {
      const cells = [delay.received_ms, delay.appended_ms].flatMap((spread) => ["p50", "p95"].map((at) => h("td", { class: "n" }, spread ? span(spread[at]).join(" ") : "–")));
      return h("tr", {}, h("th", { scope: "row" }, output.split("/").at(-1)), h("td", { class: "n" }, number(delay.results)), cells);
    }));
    fill(queries, h("h2", {}, "Queries on Spark"), rows.length ? table("Queries", [["Query", ""], ["State", ""], ["Last batch", "n"], ["Behind", "n"]], rows) : h("p", { class: "quiet" }, "None runs yet."),
      delays.length > 0 && [h("h2", {}, "Delays"), h("p", { class: "quiet small" }, "From the upload, and from the reading on the device, to the result in its sink"), table("Delays", [["Output", ""], ["Results", "n"], ["upload p50", "n"], ["upload p95", "n"], ["reading p50", "n"], ["reading p95", "n"]], delays)]);
    fill(errors, h("h2", {}, "Recent errors"), now.errors.length
      ? table("Recent errors", [["At", ""], ["What", ""], ["About", ""]], [...now.errors].reverse().slice(0, 25).map((one) => h("tr", {}, h("td", {}, clock(one.at_ms)), h("td", {}, chip(one.level === "error" ? "bad" : "warn", one.event)), h("td", { class: "quiet small" }, Object.entries(one.fields).map(([k, v]) => `${k}: ${v}`).join(" · ")))))
      : h("p", { class: "quiet" }, "None. Everything that was asked was done."));
  }
  return { place, update, stop() {} };
}

export function trials(state) {
  const levers = h("div", { class: "levers" }), story = h("section", { class: "card" }), verdict = h("section", { class: "card" }), waiting = h("div", {});
  const place = h("div", {}, head("Break it", "Each button breaks something for real. Watch it recover, then have the whole run certified."), h("div", { class: "stack" }, levers, h("div", { class: "pair" }, story, h("div", { class: "stack" }, waiting, verdict))));
  const made = new Map();
  let told = "", failed = "", open = false;
  async function pull(name) {
    try { failed = ""; await ask("levers", { method: "POST", body: { pull: name } }); } catch (error) { failed = `${error.message}: ${error.why}`; }
    update();
  }
  function update() {
    const found = state.now?.trials;
    if (!found) return void fill(levers, h("section", { class: "card" }, h("p", { class: "quiet" }, "The demo has not said yet what may be broken.")));
    if (!made.size) {
      fill(levers, found.levers.map((one, n) => h("section", { class: "card" }, h("div", {}, h("h2", {}, one.title), h("p", { class: "quiet" }, one.text)),
        h("button", { type: "button", class: n === found.levers.length - 1 ? "main" : "", "data-lever": one.name, onclick: () => pull(one.name) }, one.title))));
      for (const button of levers.querySelectorAll("button")) made.set(button.dataset.lever, button);
    }
    for (const one of found.levers) {
      const button = made.get(one.name);
      button.disabled = one.busy;
      button.textContent = one.busy ? "Going on…" : one.title;
    }
    const lines_ = [...found.story].reverse();
    fill(story, h("h2", {}, "What happened"), failed && h("p", { class: "chip bad" }, failed),
      lines_.length ? h("ol", { class: "story" }, lines_.map((one) => h("li", {}, h("time", {}, clock(one.at_ms)), h("span", { class: one.step }, one.text)))) : h("p", { class: "quiet" }, "Nothing yet: all devices are connected, and Spark is level with the log."));
    if (lines_.length && told !== lines_[0].text) { told = lines_[0].text; say(told); }
    fill(waiting, lines("Waiting on devices", "readings", [["waiting", series(state, "waiting")]]));
    certificate(verdict, found.certificate);
  }
  function certificate(card, one) {
    if (!one) return void fill(card, h("h2", {}, "Certificate"), h("p", { class: "quiet" }, "Not issued yet. It compares what devices numbered with what the log holds, and what the log leads to with what devices received."));
    open = card.querySelector("details")?.open ?? open;
    fill(card, h("h2", {}, "Certificate"), h("div", { class: "verdict" }, h("strong", { class: one.kept ? "" : "bad" }, one.kept ? "KEPT" : "BROKEN"), h("span", { class: "quiet" }, `declared ${one.declared}; delay is not part of it`)),
      h("dl", { class: "tiles" }, tile("Compared", [number(one.measured.ideal), ""], `elements in ${number(one.streams)} streams`), tile("Missing", [number(one.measured.missing), ""]), tile("Wrong", [number(one.measured.incorrect), ""]), tile("Twice", [number(one.measured.duplicates), ""])),
      h("p", { class: "quiet small" }, `${number(one.entries)} entries of the log with ${number(one.elements)} elements, computed again in ${number(one.took_s)} s: what ${number(one.by_reference)} of ${number(one.users)} users were due by the reference engine${one.by_reference < one.users ? ", the others by the devices' engine, for want of time" : ""}`),
      h("details", { open }, h("summary", {}, "The certificate in full"), h("pre", { tabindex: "0" }, one.text)));
  }
  return { place, update, stop() {} };
}
