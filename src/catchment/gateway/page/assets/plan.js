// A program's plan as a graph: sites from left to right, parts as boxes, sync streams as wires with what passed by.

import { h, fill } from "./dom.js";
import { bytes, number } from "./words.js";

const WIDE = 1120, BOX = 212, ROW = 21, GAP = 26, TOP = 64;
const SITES = ["device", "region", "fleet", "cloud"];

export function drawPlan(plan, counts) {
  const lanes = ["device", "log", ...SITES.slice(1).filter((site) => plan.parts.some((p) => p.site === site)), "results"];
  const step = (WIDE - 40) / lanes.length;
  const boxes = new Map();
  const down = plan.edges.filter((edge) => edge.direction === "down");
  const put = (lane, entries) => {
    let y = TOP;
    for (const [key, title, rows] of entries) {
      const high = 38 + rows.length * ROW + 8;
      boxes.set(key, { key, title, rows, lane, x: 20 + lanes.indexOf(lane) * step, y, wide: Math.min(BOX, step - 70), high });
      y += high + GAP;
    }
  };
  for (const site of SITES) {
    const there = plan.parts.filter((part) => part.site === site && part.streams.length);
    const isWired = (part) => plan.edges.some((edge) => edge.from === part.name || edge.to === part.name);
    // What stays on the device (what it infers of itself) is one box: it has no wire.
    const apart = there.filter((part) => !isWired(part)).flatMap((part) => part.streams);
    put(site, [...there.filter(isWired).map((part) => [part.name, part.name.split("@")[0], part.streams]), ...(apart.length ? [[`${site} alone`, "stays here", apart]] : [])]);
  }
  put("log", [["log", "log", ["durable before it", "is acknowledged"]]]);
  put("results", down.length ? [["results", "back on devices", down.map((edge) => edge.name)]] : []);
  const high = Math.max(...[...boxes.values()].map((box) => box.y + box.high)) + 24;
  const right = 20 + (lanes.length - 1) * step + Math.min(BOX, step - 70) + 20;
  const drawn = h("svg", { viewBox: `0 0 ${right} ${high}`, role: "img", "aria-label": spoken(plan, counts) });
  for (const lane of lanes) {
    const x = 20 + lanes.indexOf(lane) * step;
    drawn.append(h("rect", { class: "box site", rx: 14, x: x - 12, y: 14, width: Math.min(BOX, step - 70) + 24, height: high - 22 }));
    drawn.append(h("text", { class: "soft", x, y: 40 }, { device: "on each device", log: "gateway", cloud: "in the cloud, on Spark", results: "downlink" }[lane] ?? lane));
  }
  const wire = (from, to, words, busy, slot, slots) => {
    if (!from || !to) return;
    const y1 = from.y + (from.high * (slot + 1)) / (slots + 1), y2 = to.y + (to.high * (slot + 1)) / (slots + 1);
    const x1 = from.x + from.wide, x2 = to.x, middle = (x1 + x2) / 2;
    drawn.append(h("path", { class: `wire${busy ? " busy" : ""}`, d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` }));
    words.forEach((word, n) => drawn.append(h("text", { class: n ? "soft" : "count", x: middle, y: Math.min(y1, y2) - 10 - (words.length - 1 - n) * 15, "text-anchor": "middle" }, word)));
  };
  const up = plan.edges.filter((edge) => edge.direction === "up");
  const into = [...boxes.values()].find((box) => box.lane === "cloud");
  up.forEach((edge, n) => {
    const count = counts.up[edge.stream];
    const rate = counts.rates.elements;
    wire(boxes.get(edge.from), boxes.get("log"), [`${number(count ?? 0)}`], rate > 0, n, up.length);
  });
  const [behind, unit] = bytes(counts.behind);
  wire(boxes.get("log"), into, [counts.behind ? `${behind} ${unit}` : "level", counts.behind ? "behind" : ""].filter(Boolean), counts.rates.elements > 0, 0, 1);
  const given = down.reduce((sum, edge) => sum + (counts.down[edge.name] ?? 0), 0);
  wire(into, boxes.get("results"), [number(given)], counts.rates.given > 0, 0, 1);
  for (const box of boxes.values()) {
    drawn.append(h("rect", { class: "box", rx: 10, x: box.x, y: box.y, width: box.wide, height: box.high }));
    drawn.append(h("text", { class: "title", x: box.x + 14, y: box.y + 26 }, box.title));
    box.rows.forEach((row, n) => {
      const y = box.y + 26 + (n + 1) * ROW;
      // What a part in the cloud gives to devices is counted there; of what stays within a part nothing is.
      const count = ["results", "cloud"].includes(box.lane) ? counts.down[row] : counts.up[`${plan.program}/${row}`];
      drawn.append(h("text", { class: "soft", x: box.x + 14, y }, row));
      if (count !== undefined && box.lane !== "log") drawn.append(h("text", { class: "count", x: box.x + box.wide - 12, y, "text-anchor": "end" }, number(count)));
    });
  }
  return drawn;
}

function spoken(plan, counts) {
  const edges = plan.edges.map((edge) => {
    const passed = edge.direction === "up" ? counts.up[edge.stream] : counts.down[edge.name];
    return `${edge.name}, ${edge.direction === "up" ? "from devices" : "to devices"}, ${number(passed ?? 0)} passed`;
  });
  return `Plan of ${plan.program}: ${edges.join("; ")}`;
}

export function steps(plan) {
  return plan.parts.map((part) =>
    h("details", {}, h("summary", {}, `${part.name}: ${part.steps.length} steps`),
      h("ul", { class: "steps" }, part.steps.map((one) => h("li", {}, h("code", {}, one.id), " ", one.says)))));
}

export function wires(place, plan, counts) {
  return fill(place, drawPlan(plan, counts));
}
