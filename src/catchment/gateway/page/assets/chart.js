// Lines over the last minutes, and bars: drawn as SVG, with units, an axis, and a sentence for those who cannot see it.

import { h } from "./dom.js";
import { number } from "./words.js";

const WIDE = 360, HIGH = 120, LEFT = 44, BOTTOM = 18, TOP = 8;

function nice(most) {
  if (!most) return 1;
  const step = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((n) => n * step).find((n) => n >= most) ?? most;
}

// `series` are named lists of [milliseconds, value]; where there is no value, the line is interrupted.
export function lines(title, unit, series, { scale = 1 } = {}) {
  const all = series.flatMap(([, points]) => points).filter(([, value]) => value !== null && value !== undefined);
  const now = all.length ? Math.max(...all.map(([at]) => at)) : 0;
  const from = all.length ? Math.min(Math.min(...all.map(([at]) => at)), now - 30_000) : 0;
  const most = nice(Math.max(0, ...all.map(([, value]) => value * scale)));
  const x = (at) => LEFT + ((at - from) / Math.max(1, now - from)) * (WIDE - LEFT - 4);
  const y = (value) => TOP + (1 - (value * scale) / most) * (HIGH - TOP - BOTTOM);
  const [, first] = series[0];
  const known = first.filter(([, value]) => value !== null && value !== undefined).map(([, value]) => value * scale);
  const last = known.at(-1);
  const said = known.length
    ? `${title}: now ${number(last)} ${unit}, between ${number(Math.min(...known))} and ${number(Math.max(...known))} in the last ${Math.max(1, Math.round((now - from) / 60_000))} minutes`
    : `${title}: nothing yet`;
  const drawn = h("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": said });
  for (const part of [0, 0.5, 1]) {
    const level = y((most * part) / scale);
    drawn.append(h("line", { class: "grid", x1: LEFT, x2: WIDE, y1: level, y2: level }));
    // An axis without anything on it would say what is not so.
    if (all.length) drawn.append(h("text", { x: LEFT - 8, y: level + 4, "text-anchor": "end" }, number(most * part)));
  }
  if (all.length) {
    drawn.append(h("text", { x: LEFT, y: HIGH - 3 }, `${Math.round((now - from) / 1000)} s ago`));
    drawn.append(h("text", { x: WIDE - 2, y: HIGH - 3, "text-anchor": "end" }, "now"));
  } else drawn.append(h("text", { x: (LEFT + WIDE) / 2, y: HIGH / 2 - 10, "text-anchor": "middle" }, "nothing yet"));
  series.forEach(([, points], place) => {
    const runs = [[]];
    for (const [at, value] of points) {
      if (value === null || value === undefined) runs.push([]);
      else runs.at(-1).push([x(at), y(value)]);
    }
    for (const run of runs.filter((one) => one.length > 1)) {
      const path = run.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L");
      if (place === 0) drawn.append(h("path", { class: "a0", d: `M${run[0][0].toFixed(1)} ${HIGH - BOTTOM}L${path}L${run.at(-1)[0].toFixed(1)} ${HIGH - BOTTOM}Z` }));
      drawn.append(h("path", { class: `l${place}`, d: `M${path}` }));
    }
  });
  return h(
    "figure", { class: "card chart" },
    h("header", {}, h("h2", {}, title), h("b", {}, last === undefined ? "" : [number(last), " ", h("small", {}, unit)])),
    series.length > 1 && h("div", { class: "keys" }, series.map(([name]) => h("span", {}, name))),
    drawn,
  );
}

// `bars` are [label, value]; the last one stands for now.
export function columns(title, unit, bars) {
  const most = nice(Math.max(0, ...bars.map(([, value]) => value)));
  const wide = (WIDE - LEFT) / Math.max(12, bars.length);
  const said = bars.length
    ? `${title}: ${number(bars.at(-1)[1])} ${unit} at ${bars.at(-1)[0]}, at most ${number(Math.max(...bars.map(([, v]) => v)))} since ${bars[0][0]}`
    : `${title}: nothing yet`;
  const drawn = h("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": said });
  for (const part of [0, 0.5, 1]) {
    const level = TOP + (1 - part) * (HIGH - TOP - BOTTOM);
    drawn.append(h("line", { class: "grid", x1: LEFT, x2: WIDE, y1: level, y2: level }));
    drawn.append(h("text", { x: LEFT - 8, y: level + 4, "text-anchor": "end" }, number(most * part)));
  }
  bars.forEach(([, value], place) => {
    const high = (value / most) * (HIGH - TOP - BOTTOM);
    drawn.append(h("rect", { class: "bar", rx: 2, x: LEFT + place * wide + 1, y: HIGH - BOTTOM - high, width: Math.max(1, wide - 2), height: high }));
  });
  if (bars.length) {
    drawn.append(h("text", { x: LEFT, y: HIGH - 3 }, bars[0][0]));
    if (bars.length > 4) drawn.append(h("text", { x: LEFT + bars.length * wide, y: HIGH - 3, "text-anchor": "end" }, bars.at(-1)[0]));
  }
  const last = bars.at(-1);
  return h(
    "figure", { class: "card chart" },
    h("header", {}, h("h2", {}, title), h("b", {}, last ? number(last[1]) : "–", " ", h("small", {}, unit))),
    drawn,
  );
}
