// The call tree as a flame graph, drawn on a canvas.
//
// Not d3-flame-graph: it makes an SVG group for each node, and the tree of 10,000 sites has tens of thousands. Here nodes narrower than half a pixel are
// never reached: children are sorted by size, so drawing stops at the first that is too small.
import { colour, hideTip, showTip } from "./dom.js";
import { shortened, shortFunction } from "./format.js";

const rowHeight = 18, least = 0.5;

export class Flame {
  /// `pick` is told which node is looked at; null: none is any more.
  constructor(host, { describe, pick, zoomed }) {
    Object.assign(this, { host, describe, pick, zoomed, words: [], nodes: [], root: null, focus: null, at: null, empty: "loading", whyEmpty: "no samples" });
    this.scroller = Object.assign(document.createElement("div"), { className: "scroll" });
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "Flame graph. Arrow keys move, Enter zooms, Escape shows all.");
    this.scroller.append(this.canvas);
    host.append(this.scroller);
    new ResizeObserver(() => this.draw()).observe(host);
    this.canvas.addEventListener("mousemove", event => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => hideTip(this));
    this.canvas.addEventListener("click", event => this.click(this.find(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("keydown", event => this.keyPressed(event));
  }

  /// What stands where there is no graph.
  say(words) {
    this.empty = words;
    this.canvas.setAttribute("aria-description", words);
    this.draw();
  }

  /// `data`: what /api/stacks answers. `isByLine`: to the question by=line.
  set(data, isByLine) {
    this.canvas.removeAttribute("aria-description");
    this.empty = data.is_growth ? "nothing has grown or shrunk since then" : this.whyEmpty;
    const path = this.focus && this.focus !== this.root ? this.pathOf(this.focus) : [];
    const pathAt = this.at && this.pathOf(this.at);
    this.data = data;
    this.isByLine = isByLine;
    this.nodes = data.parent.map((parent, i) => ({ parent: null, children: [], total: data.total[i], own: data.own[i], grown: data.grown[i], error: data.error[i],
      place: data.places[data.place[i]] ?? null, hasLines: data.has_lines[i] === 1, depth: 0, isHit: false }));
    data.parent.forEach((parent, i) => {
      if (parent < 0) return;
      const node = this.nodes[i];
      node.parent = this.nodes[parent];
      node.depth = node.parent.depth + 1;
      node.parent.children.push(node);
    });
    for (const node of this.nodes) node.children.sort((a, b) => b.total - a.total);
    this.root = this.nodes[0] ?? null;
    const found = this.alongPath(path), foundAt = pathAt && this.alongPath(pathAt);
    this.focus = (this.wantedZoom && this.nodeAt(this.wantedZoom)) ?? found.at(-1) ?? null;
    this.wantedZoom = null;
    // Where it is still there, it is described anew.
    this.at = foundAt?.length > pathAt?.length ? foundAt.at(-1) : null;
    this.pick(this.at);
    this.search(this.words.join(" "));
    this.zoomed(this.focus !== this.root);
  }

  /// The root, and the nodes of a path as far as they are there.
  alongPath(path) {
    const nodes = this.root ? [this.root] : [];
    for (const name of path) {
      const next = nodes.at(-1)?.children.find(child => this.nameOf(child) === name);
      if (!next) break;
      nodes.push(next);
    }
    return nodes;
  }

  /// Tells a node from its siblings, also in the next data.
  nameOf({ place }) {
    if (!place) return "";
    const [name, , line, module, isInlined] = place;
    return [name, module, isInlined, ...(this.isByLine ? [line] : [])].join("\n");
  }

  pathOf(node) {
    const path = [];
    for (let n = node; n.parent; n = n.parent) path.unshift(this.nameOf(n));
    return path;
  }

  /// Names the node that fills the width, as far as a link needs to; empty: the root.
  get zoomPath() {
    return this.wantedZoom ?? (this.focus && this.focus !== this.root ? this.pathOf(this.focus).map(name => hashOf(name).toString(36)).join(".") : "");
  }
  /// Of the next data.
  set zoomPath(path) { this.wantedZoom = path || null; }

  nodeAt(zoomPath) {
    let node = this.root;
    for (const name of zoomPath.split(".")) node = node?.children.find(child => hashOf(this.nameOf(child)).toString(36) === name);
    return node;
  }

  /// Answers how much of the whole goes through nodes that match.
  search(text) {
    this.words = words(text);
    let matched = 0;
    const visit = (node, isBelow) => {
      const p = node.place;
      const all = p ? (p[0] + " " + p[1] + ":" + p[2] + " " + p[3]).toLowerCase() : "";
      node.isHit = this.words.length > 0 && p !== null && this.words.every(word => all.includes(word));
      if (node.isHit && !isBelow) matched += node.total;
      for (const child of node.children) visit(child, isBelow || node.isHit);
    };
    if (this.root) visit(this.root, false);
    this.draw();
    return this.root?.total > 0 ? matched / this.root.total : 0;
  }

  zoom(node) {
    this.focus = node ?? this.root;
    this.zoomed(this.focus !== this.root);
    this.draw();
  }

  click(node) {
    if (!node) return;
    this.at = node;
    this.pick(node);
    this.zoom(node);
  }

  keyPressed(event) {
    const from = this.at ?? this.focus;
    if (!from) return;
    const siblings = from.parent?.children ?? [from];
    const to = { ArrowUp: () => from.parent, ArrowDown: () => from.children[0], ArrowLeft: () => siblings[siblings.indexOf(from) - 1],
      ArrowRight: () => siblings[siblings.indexOf(from) + 1], Enter: () => (this.zoom(from), from), Escape: () => (this.zoom(this.root), from) }[event.key];
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    this.at = to() ?? from;
    this.pick(this.at);
    this.draw();
  }

  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.paint();
    });
  }

  paint() {
    const width = this.scroller.clientWidth;
    if (width === 0) return;
    const boxes = this.boxes = this.root ? this.layOut(width) : [];
    const rows = boxes.reduce((most, box) => Math.max(most, box.row), 0) + 1;
    const scale = devicePixelRatio || 1, height = Math.max(rows, 6) * rowHeight + 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.height = height + "px";
    }
    const c = this.canvas.getContext("2d");
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, width, height);
    const look = { isDark: document.documentElement.classList.contains("dark"), text: colour("text"), quiet: colour("quiet"), card: colour("card"), hit: colour("hit"), accent: colour("accent") };
    c.textBaseline = "middle";
    if (!this.root || !(this.root.total > 0)) {
      c.fillStyle = look.quiet;
      c.font = "13px system-ui, sans-serif";
      c.fillText(this.empty, 10, 30);
      return;
    }
    for (const box of boxes) this.paintBox(c, box, look);
  }

  layOut(width) {
    const boxes = [];
    const above = [];
    for (let n = this.focus; n; n = n.parent) above.unshift(n);
    above.forEach((node, row) => boxes.push({ node, row, x: 0, w: width, isAbove: node !== this.focus }));
    const base = this.focus.depth, scale = width / this.focus.total;
    const visit = (node, x) => {
      for (const child of node.children) {
        const w = child.total * scale;
        if (w < least) break;
        boxes.push({ node: child, row: child.depth, x, w, isAbove: false });
        visit(child, x);
        x += w;
      }
    };
    if (this.focus.total > 0) visit(this.focus, 0, base);
    return boxes;
  }

  paintBox(c, { node, row, x, w, isAbove }, look) {
    const y = row * rowHeight, isDimmed = this.words.length > 0 && !node.isHit;
    c.globalAlpha = isAbove ? 0.55 : isDimmed ? 0.4 : 1;
    c.fillStyle = node.isHit ? look.hit : this.fill(node, look);
    c.fillRect(x, y, Math.max(w - 0.6, 0.4), rowHeight - 1);
    c.globalAlpha = isDimmed ? 0.75 : 1;
    if (node === this.at) {
      c.strokeStyle = look.accent;
      c.lineWidth = 2;
      c.strokeRect(x + 1, y + 1, Math.max(w - 2.6, 0.5), rowHeight - 3);
    }
    if (w < 24) return;
    c.font = (node.place?.[4] ? "italic " : "") + "11.5px system-ui, 'Liberation Sans', sans-serif";
    c.fillStyle = node.isHit ? "#fff" : look.text;
    const name = clipped(c, shortName(node), w - 8);
    if (name) c.fillText(name, x + 4, y + rowHeight / 2);
    c.globalAlpha = 1;
  }

  fill(node, look) {
    if (this.data.is_growth) {
      // Red grows, blue shrinks; grey is even, or below the error. Deeper where it is one way only.
      const isKnown = Math.abs(node.grown) > (node.error ?? 0);
      const way = isKnown && node.total > 0 ? node.grown / node.total : 0, strength = Math.min(1, Math.abs(way));
      const light = look.isDark ? 26 + strength * 14 : 90 - strength * 18;
      return `hsl(${way >= 0 ? 6 : 214} ${isKnown ? 12 + strength * 60 : 0}% ${light}%)`;
    }
    if (!node.place) return look.isDark ? "#2a3038" : "#e3e7ec";
    const spread = (hashOf(node.place[0]) % 100) / 100;
    // The program's own code, libraries, and the standard library's templates are of three kinds.
    const kind = /^(std|__gnu_cxx)::|^operator new/.test(node.place[0]) ? [205, 14] : node.place[3] === this.mainModule ? [152, 30] : [36, 38];
    const light = look.isDark ? 23 + spread * 9 : 77 + spread * 10;
    return `hsl(${kind[0] + spread * 14} ${look.isDark ? kind[1] * 0.6 : kind[1]}% ${light}%)`;
  }

  find(x, y) {
    const row = Math.floor(y / rowHeight);
    return this.boxes?.find(box => box.row === row && x >= box.x && x < box.x + box.w)?.node ?? null;
  }

  hover(event) {
    const node = this.find(event.offsetX, event.offsetY);
    this.canvas.style.cursor = node ? "pointer" : "default";
    if (node) showTip(this.describe(node), event.clientX, event.clientY, this);
    else hideTip(this);
  }
}

export const words = text => text.toLowerCase().split(/\s+/).filter(Boolean);
const shortName = node => {
  if (!node.place) return "all";
  const [name, file, line] = node.place;
  return shortFunction(name) + (file && !node.hasLines ? `  ${file.slice(file.lastIndexOf("/") + 1)}:${line}` : "");
};

const hashes = new Map();
function hashOf(text) {
  let hash = hashes.get(text);
  if (hash === undefined) {
    hash = 7;
    for (let i = 0; i < text.length; ++i) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
    hashes.set(text, hash);
  }
  return hash;
}

function clipped(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(shortened(text, middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 2 ? shortened(text, low) : "";
}
