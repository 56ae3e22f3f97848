/** What all pages share: quantities as people read them, and elements. */
function seconds(v) { return v >= 100 ? v.toFixed(0) + " s" : v >= 1 ? v.toFixed(2) + " s" : (v * 1e3).toFixed(v >= .1 ? 0 : 1) + " ms"; }
function bytes(v) {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  for (v /= 1024; v >= 1024 && u < 3; ++u) v /= 1024;
  return v.toFixed(v < 100 && u > 0 ? 1 : 0) + " " + units[u];
}
function count(v) { return Math.round(v).toLocaleString("en"); }
const percent = v => (v >= 0 ? "+" : "−") + Math.abs(v * 100).toFixed(1) + " %";

/** A command as one gives it to a shell: its words in quotes where that is needed. */
const shownCommand = words => words.map(word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`).join(" ");

function html(name, attributes = {}, ...children) { return fill(document.createElement(name), attributes, children); }
function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Round values that divide [low, high] into about `wanted` steps of at least `least`; bytes are round
    in their own unit, and as they are shown. */
function ticks(low, high, wanted, show, least = 0) {
  if (show === bytes) {
    const unit = 1024 ** Math.floor(Math.log2(high) / 10), shownLeast = unit > 1024 && high < 100 * unit ? .1 : 1;
    return ticks(low / unit, high / unit, wanted, null, shownLeast).map(v => v * unit);
  }
  const raw = Math.max((high - low) / wanted, least), power = 10 ** Math.floor(Math.log10(raw) + 1e-9);
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= raw * .999);
  const result = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) result.push(v);
  return result;
}

/** Shows a text beside an element while it is pointed at. */
const tip = document.body.appendChild(html("div", {id: "tip", role: "status"}));
function explain(element, text) {
  const at = (x, y) => {
    tip.textContent = text;
    tip.style.opacity = 1;
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, y - tip.offsetHeight - 10) + "px";
  };
  element.addEventListener("pointermove", event => { at(event.clientX, event.clientY); event.stopPropagation(); });
  element.addEventListener("focus", () => { const box = element.getBoundingClientRect(); at(box.left + 100, box.top); });
  for (const leave of ["pointerleave", "blur"]) element.addEventListener(leave, () => { tip.style.opacity = 0; });
  return element;
}
