// Numbers as people read them, always with what they are measured in.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export function number(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 100 || Number.isInteger(value) ? whole.format(value) : fine.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return ["–", ""];
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (value >= size) return [fine.format(value / size), unit];
  return [whole.format(value), "B"];
}

export function span(ms) {
  if (ms === null || ms === undefined) return ["–", ""];
  if (ms === 0) return ["0", "s"];
  if (ms < 1000) return [whole.format(ms), "ms"];
  if (ms < 120_000) return [fine.format(ms / 1000), "s"];
  if (ms < 7_200_000) return [fine.format(ms / 60_000), "min"];
  return [fine.format(ms / 3_600_000), "h"];
}

// Of a field: metres become kilometres where they are many, and so on; the unit is told with the number.
export function measured(value, unit) {
  if (value === null || value === undefined) return ["–", ""];
  if (unit === "m" && Math.abs(value) >= 1000) return [fine.format(value / 1000), "km"];
  if (unit === "g" && Math.abs(value) >= 1000) return [fine.format(value / 1000), "kg"];
  if (unit === "mg" && Math.abs(value) >= 1000) return [fine.format(value / 1000), "g"];
  if (unit === "s") return span(value * 1000);
  return [number(value), unit];
}

// A field's name as a heading: "pm" is an abbreviation, most others are words.
export function heading(words) {
  return words.replace(/\bpm\b/g, "PM").replace(/^./, (first) => first.toUpperCase());
}

export function clock(ms) {
  return new Date(ms).toISOString().slice(11, 19);
}

export function instant(us) {
  const at = new Date(Number(us) / 1000).toISOString();
  return `${at.slice(5, 10)} ${at.slice(11, 16)}`;
}

export function ago(ms, now) {
  if (ms === null || ms === undefined) return "–";
  const [value, unit] = span(Math.max(0, now - ms));
  return `${value} ${unit} ago`;
}
