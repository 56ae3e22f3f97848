// The few things that all views do with the document.
import { shortened } from "./format.js";

export const $ = id => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

const tip = $("tip");
let owner = null;

/// Long lines, which are names, share the room of some twenty lines.
function fitted(words) {
  const lines = words.split("\n"), line = 150, many = lines.filter(one => one.length > line).length;
  return lines.map(one => shortened(one, Math.max(line, Math.floor(10 * line / many)))).join("\n");
}

export function showTip(words, x, y, by) {
  owner = by;
  tip.hidden = false;
  text(tip, fitted(words));
  const box = tip.getBoundingClientRect(), isRoomBelow = y + 18 + box.height <= innerHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = Math.max(4, isRoomBelow ? y + 18 : y - box.height - 10) + "px";
}

export function hideTip(by) {
  if (owner === by) tip.hidden = true;
}

/// The pressed one of a row of buttons.
export function choice(host, attribute, then) {
  host.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    press(host, attribute, button.dataset[attribute]);
    then(button.dataset[attribute]);
  });
}

/// Shows the button with this value as the pressed one.
export function press(host, attribute, value) {
  for (const button of host.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset[attribute] === value));
}

export const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
