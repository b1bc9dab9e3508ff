// Elements, made in one line each: attributes as they are written, properties and listeners by name.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title", "polyline"]);

export function h(name, attributes = {}, ...children) {
  const made = SHAPES.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "width%") made.style.width = `${value}%`;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

// What is drawn anew each second must not take the reader's place, selection or focus with it: unchanged text stays.
export function fill(place, ...children) {
  const fresh = h("div", {}, ...children);
  if (place.innerHTML !== fresh.innerHTML) place.replaceChildren(...fresh.childNodes);
  return place;
}

export function say(text) {
  const place = document.getElementById("spoken");
  if (place.textContent !== text) place.textContent = text;
}
