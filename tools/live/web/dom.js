// The few things that all views do with the document.
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

export function showTip(words, x, y, by) {
  owner = by;
  tip.hidden = false;
  text(tip, words);
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
}

export function hideTip(by) {
  if (owner === by) tip.hidden = true;
}

/// The pressed one of a row of buttons.
export function choice(host, attribute, then) {
  host.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of host.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
    then(button.dataset[attribute]);
  });
}

export const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
