// The map: devices and the ways they came, coloured by how. Its base is drawn (degrees and a scale), so it needs no
// network. Dragged, pinched, and moved by arrow keys; + and − come closer and go away.

import { h, fill, say } from "./dom.js";
import { clock, number } from "./words.js";

const KEPT = 400;
const M_PER_DEG = 111_195;
const KNOWN = ["still", "walk", "bike", "motor"];
const TRACK_MS = 45 * 60_000;

export class Fleet {
  // What the log has shown of devices, as far as this browser was told.
  constructor() {
    this.devices = new Map();
    this.version = 0;
    this.isDemo = false;
  }

  take(moved) {
    for (const [name, one] of Object.entries(moved)) {
      const known = this.devices.get(name) ?? { name, user: one.user, points: [] };
      known.points.push(...one.points.map(([lat, lon, how, at]) => ({ lat, lon, how, at })));
      known.points.sort((a, b) => a.at - b.at);
      known.points.splice(0, Math.max(0, known.points.length - KEPT));
      known.seen = Date.now();
      this.devices.set(name, known);
    }
    this.version += 1;
  }

  counts() {
    const found = new Map();
    for (const { points } of this.devices.values()) {
      const how = points.at(-1).how || "elsewhere";
      found.set(how, (found.get(how) ?? 0) + 1);
    }
    return [...found].sort(([a], [b]) => (KNOWN.indexOf(a) + 9) % 9 - ((KNOWN.indexOf(b) + 9) % 9));
  }

  now() {
    return Math.max(0, ...[...this.devices.values()].map(({ points }) => points.at(-1).at));
  }
}

export function drawMap(fleet) {
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of devices" });
  const tip = h("div", { class: "tip small", hidden: true });
  const legend = h("ul", { class: "legend", "aria-label": "Devices by mode" });
  const note = h("span", { class: "quiet" });
  const button = (title, words, act) => h("button", { type: "button", "aria-label": title, title, onclick: act }, words);
  const view = { lat: 0, lon: 0, px: 0, own: false };
  const place = h(
    "section", { class: "card map", "aria-label": "Map" },
    canvas, tip,
    h("div", { class: "tools" },
      button("Closer", "+", () => zoom(1.5)), button("Further away", "−", () => zoom(1 / 1.5)),
      button("Where most devices are", "Most", () => fit(0.75)), button("All devices", "All", () => fit(1))),
    h("div", { class: "foot" }, legend, note),
  );
  let drawn = -1, size = "", colours = {}, spoken = 0, theme = "";

  // Around the ways of most devices; by itself it follows only when they have clearly gone elsewhere.
  function fit(share, own = true) {
    const all = [...fleet.devices.values()];
    if (!all.length || !canvas.clientWidth) return;
    const middle = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
    const lat = middle(all.map(({ points }) => points.at(-1).lat)), lon = middle(all.map(({ points }) => points.at(-1).lon));
    const k = Math.cos((lat * Math.PI) / 180);
    const far = ({ points }) => Math.hypot(points.at(-1).lat - lat, (points.at(-1).lon - lon) * k);
    const near = all.sort((a, b) => far(a) - far(b)).slice(0, Math.max(1, Math.ceil(all.length * share)));
    const kept = near.flatMap(({ points }) => points.filter((_, n) => n % 12 === 0 || n === points.length - 1));
    const [south, north] = [Math.min(...kept.map((p) => p.lat)), Math.max(...kept.map((p) => p.lat))];
    const [west, east] = [Math.min(...kept.map((p) => p.lon)), Math.max(...kept.map((p) => p.lon))];
    const high = Math.max(0.012, north - south) * 1.25, wide = Math.max(0.012, (east - west) * k) * 1.2;
    const wanted = { lat: (south + north) / 2, lon: (west + east) / 2, px: Math.min(canvas.clientHeight / high, canvas.clientWidth / wide), own };
    const [x, y] = view.px ? at(wanted) : [0, 0];
    const isNear = Math.abs(x - canvas.clientWidth / 2) < canvas.clientWidth / 5 && Math.abs(y - canvas.clientHeight / 2) < canvas.clientHeight / 5;
    if (!own && view.px && isNear && wanted.px > view.px * 0.75 && wanted.px < view.px * 1.6) return;
    Object.assign(view, wanted);
    drawn = -1;
  }
  function zoom(by) { view.px = Math.min(4e6, Math.max(40, view.px * by)); view.own = true; drawn = -1; }
  function move(right, down) {
    view.lat += down / view.px;
    view.lon -= right / (view.px * Math.cos((view.lat * Math.PI) / 180));
    view.own = true; drawn = -1;
  }
  const at = (p) => [
    canvas.clientWidth / 2 + (p.lon - view.lon) * Math.cos((view.lat * Math.PI) / 180) * view.px,
    canvas.clientHeight / 2 - (p.lat - view.lat) * view.px,
  ];

  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pointers.set(event.pointerId, event); });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return point(event);
    const [other] = [...pointers.values()].filter((one) => one.pointerId !== event.pointerId);
    if (other) {
      const apart = (one) => Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY);
      zoom(apart(event) / Math.max(1, apart(before)));
    } else move(event.offsetX - before.offsetX, event.offsetY - before.offsetY);
    pointers.set(event.pointerId, event);
  });
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (event) => { pointers.delete(event.pointerId); point(event); });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (step) move(...step);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else return;
    event.preventDefault();
  });

  function point(event) {
    let best = null, least = 18;
    for (const one of fleet.devices.values()) {
      const [x, y] = at(one.points.at(-1));
      const far = Math.hypot(x - event.offsetX, y - event.offsetY);
      if (far < least) [best, least] = [one, far];
    }
    tip.hidden = !best;
    if (best) {
      const last = best.points.at(-1);
      fill(tip, h("b", {}, best.name), ` of ${best.user}`, h("br"), `${last.how || "no mode"}, at ${clock(last.at)}`);
    }
  }

  function paint() {
    const box = `${canvas.clientWidth}x${canvas.clientHeight}x${devicePixelRatio}`;
    const dark = document.documentElement.dataset.theme ?? "";
    if (drawn === fleet.version && size === box && theme === dark) return;
    if (!canvas.clientWidth) return;
    if (size !== box) {
      canvas.width = canvas.clientWidth * devicePixelRatio;
      canvas.height = canvas.clientHeight * devicePixelRatio;
    }
    [drawn, size, theme] = [fleet.version, box, dark];
    const style = getComputedStyle(document.documentElement);
    for (const name of ["line", "quiet", "text", "card", "accent", "other", ...KNOWN]) colours[name] = style.getPropertyValue(`--${name}`).trim();
    if (!view.own) fit(0.75, false);
    drawn = fleet.version;
    const pen = canvas.getContext("2d");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    if (!fleet.devices.size || !view.px) return;
    base(pen);
    for (const one of fleet.devices.values()) track(pen, one);
    for (const one of fleet.devices.values()) dot(pen, one);
    const counts = fleet.counts();
    fill(legend, counts.map(([how, n]) => h("li", {}, h("i", { "data-mode": how }), `${how} ${number(n)}`)));
    fill(note, fleet.isDemo ? `Recorded tracks and generated days: it is ${clock(fleet.now())} there` : `The latest reading is of ${clock(fleet.now())} UTC`);
    const said = `Map of ${fleet.devices.size} devices: ${counts.map(([how, n]) => `${n} ${how}`).join(", ")}`;
    canvas.setAttribute("aria-label", said);
    if (Date.now() - spoken > 30_000) { spoken = Date.now(); say(said); }
  }

  function base(pen) {
    const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
    const k = Math.cos((view.lat * Math.PI) / 180);
    const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].find((s) => s * view.px * k > 90) ?? 10;
    const digits = step < 0.01 ? 3 : step < 1 ? 2 : 0;
    pen.strokeStyle = colours.line; pen.fillStyle = colours.quiet; pen.lineWidth = 1; pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    pen.beginPath();
    const left = view.lon - wide / 2 / (view.px * k), bottom = view.lat - high / 2 / view.px;
    for (let lon = Math.ceil(left / step) * step; lon < left + wide / (view.px * k); lon += step) {
      const [x] = at({ lat: view.lat, lon });
      pen.moveTo(x, 0); pen.lineTo(x, high); pen.fillText(`${lon.toFixed(digits)}° E`, x + 4, high - 8);
    }
    for (let lat = Math.ceil(bottom / step) * step; lat < bottom + high / view.px; lat += step) {
      const [, y] = at({ lat, lon: view.lon });
      pen.moveTo(0, y); pen.lineTo(wide, y); if (y > 20 && y < high - 26) pen.fillText(`${lat.toFixed(digits)}° N`, 8, y - 5);
    }
    pen.stroke();
    const metres = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000].find((m) => (m / M_PER_DEG) * view.px > 70) ?? 100000;
    const long = (metres / M_PER_DEG) * view.px, x = wide - long - 18, y = high - 30;
    pen.strokeStyle = pen.fillStyle = colours.text; pen.lineWidth = 2;
    pen.beginPath(); pen.moveTo(x, y - 5); pen.lineTo(x, y); pen.lineTo(x + long, y); pen.lineTo(x + long, y - 5); pen.stroke();
    pen.textAlign = "center"; pen.fillText(metres >= 1000 ? `${metres / 1000} km` : `${metres} m`, x + long / 2, y - 6); pen.textAlign = "start";
  }

  function track(pen, { points }) {
    const last = points.at(-1).at;
    pen.lineWidth = 2; pen.lineCap = pen.lineJoin = "round";
    for (let n = 1; n < points.length; n += 1) {
      const [a, b] = [points[n - 1], points[n]];
      if (last - b.at > TRACK_MS || b.at - a.at > 300_000) continue;
      pen.globalAlpha = 0.75 * (1 - (last - b.at) / TRACK_MS) + 0.05;
      pen.strokeStyle = colours[b.how] ?? colours.other;
      pen.beginPath(); pen.moveTo(...at(a)); pen.lineTo(...at(b)); pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  function dot(pen, { points }) {
    const last = points.at(-1);
    const [x, y] = at(last);
    pen.beginPath(); pen.arc(x, y, 5, 0, 7);
    pen.fillStyle = colours[last.how] ?? colours.other; pen.fill();
    pen.lineWidth = 1.5; pen.strokeStyle = colours.card; pen.stroke();
  }

  let running = true;
  const frame = () => { if (running) { paint(); setTimeout(() => requestAnimationFrame(frame), 120); } };
  requestAnimationFrame(frame);
  return { place, stop: () => { running = false; } };
}
