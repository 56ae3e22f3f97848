// A table of any number of rows, of which only those in sight exist: elements are made once and filled anew, so that scrolling through 40,000 rows costs
// the same as through 40.
//
// A column is {key, title, width, value(row), text(row)}, and may have: left, name (in the code font, cut in its middle), tail(row) (the end of the text, which is not cut),
// tip(row), share(row) from 0 to 1 (a bar behind the figure), bars(row) (a histogram instead of text), mood(row) (a class), about (what the column means).
// Search looks at the texts of left columns.
import { addressChanged } from "./address.js";
import { element, hideTip, showTip, text } from "./dom.js";
import { shortened } from "./format.js";

// Where the page is narrow a row with a name has it in a line of its own, and a second name in the next; main.css has the same width and heights.
const narrow = matchMedia("(max-width: 600px)");

export class Table {
  constructor(host, { columns, sort, key, pick, empty = "nothing here" }) {
    Object.assign(this, { host, columns, sort, usualSort: sort, key, pick, empty, rows: [], shown: [], pool: [], words: [], chosen: null, wantedRow: "" });
    host.tabIndex = 0;
    host.setAttribute("role", "grid");
    host.classList.toggle("picks", !!pick);
    host.replaceChildren();
    this.names = columns.filter(c => c.name).length;
    host.classList.toggle("named", this.names > 0);
    host.classList.toggle("twice", this.names > 1);
    const figures = columns.filter(c => !c.name);
    host.style.setProperty("--columns", columns.map(c => c.width).join(" "));
    host.style.setProperty("--least", leastWidth(columns));
    host.style.setProperty("--narrow-columns", figures.map(c => c.width).join(" "));
    host.style.setProperty("--narrow-least", leastWidth(figures));
    this.head = element("div", { className: "head", role: "row" });
    for (const c of columns) {
      const button = element("button", { textContent: c.title, title: c.about ?? "", onclick: () => this.sortBy(c) });
      this.head.append(element("div", { className: (c.left ? "left" : "") + (c.name ? " name" : ""), role: "columnheader" }, button));
    }
    this.body = element("div", { role: "rowgroup" });
    this.none = element("div", { className: "empty", textContent: empty });
    host.append(this.head, this.body, this.none);
    this.listen();
    this.markSort();
  }

  get rowHeight() { return this.names > 0 && narrow.matches ? (this.names > 1 ? 62 : 44) : 23; }
  get headHeight() { return this.names > 0 && narrow.matches ? 48 : 27; }

  listen() {
    this.stop?.abort();
    const { signal } = this.stop = new AbortController();
    this.host.addEventListener("scroll", () => this.draw(), { passive: true, signal });
    this.observer?.disconnect();
    this.observer = new ResizeObserver(() => {
      this.body.style.height = this.shown.length * this.rowHeight + "px";
      this.draw();
    });
    this.observer.observe(this.host);
    this.host.addEventListener("mousemove", event => this.explain(event), { signal });
    this.host.addEventListener("mouseleave", () => hideTip(this), { signal });
    this.host.addEventListener("click", event => {
      const row = event.target.closest(".row");
      if (row && this.pick) this.choose(this.shown[row.at]);
    }, { signal });
    this.host.addEventListener("keydown", event => this.key_pressed(event), { signal });
  }

  end() {
    this.stop.abort();
    this.observer.disconnect();
    hideTip(this);
  }

  key_pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.pick || event.target !== this.host) return;
    event.preventDefault();
    const at = this.shown.findIndex(row => this.key(row) === this.chosen);
    const next = Math.max(0, Math.min(this.shown.length - 1, at + step));
    if (!this.shown[next]) return;
    this.choose(this.shown[next]);
    const { rowHeight, headHeight } = this, top = next * rowHeight;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    if (top + rowHeight + headHeight > this.host.scrollTop + this.host.clientHeight) this.host.scrollTop = top + 2 * rowHeight + headHeight - this.host.clientHeight;
  }

  /// For the page's address: "-live" sorts by that column, the largest first.
  get parameters() {
    const { key, falls } = this.sort, isUsual = key === this.usualSort.key && falls === this.usualSort.falls;
    return { sort: isUsual ? "" : (falls ? "-" : "") + key, row: this.wantedRow || (this.chosen === null ? "" : String(this.chosen)) };
  }

  /// The row may come later, or never.
  use({ sort = "", row = "" }) {
    const key = sort.replace(/^-/, "");
    if (this.columns.some(c => c.key === key)) this.sort = { key, falls: sort.startsWith("-") };
    if (this.pick) this.wantedRow = row;
    this.markSort();
    this.arrange();
  }

  choose(row) {
    this.chosen = this.key(row);
    this.wantedRow = "";
    addressChanged();
    hideTip(this);  // or it lies over what opens
    this.pick(row);
    this.draw();
  }

  /// What stands there without rows.
  say(words) {
    this.empty = words;
    this.arrange();
  }

  set(rows) {
    this.rows = rows;
    this.arrange();
    const wanted = this.wantedRow && rows.find(row => String(this.key(row)) === this.wantedRow);
    if (wanted) this.choose(wanted);
  }

  search(words) {
    this.words = words.toLowerCase().split(/\s+/).filter(Boolean);
    this.host.scrollTop = 0;
    this.arrange();
  }

  sortBy(column) {
    const isSame = this.sort.key === column.key;
    this.sort = { key: column.key, falls: isSame ? !this.sort.falls : !column.left };
    addressChanged();
    this.markSort();
    this.arrange();
  }

  markSort() {
    this.columns.forEach((c, i) => {
      const head = this.head.children[i];
      if (c.key === this.sort.key) head.setAttribute("aria-sort", this.sort.falls ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      text(head.firstChild, c.title + (c.key === this.sort.key ? (this.sort.falls ? " ▾" : " ▴") : ""));
    });
  }

  arrange() {
    const column = this.columns.find(c => c.key === this.sort.key), way = this.sort.falls ? -1 : 1;
    const searched = this.columns.filter(c => c.left);
    let rows = this.rows;
    if (this.words.length > 0) {
      rows = rows.filter(row => {
        const all = searched.map(c => c.text(row)).join(" ").toLowerCase();
        return this.words.every(word => all.includes(word));
      });
    }
    const keyed = rows.map(row => [column.value(row), row]);
    keyed.sort((a, b) => (a[0] < b[0] ? -way : a[0] > b[0] ? way : 0));
    this.shown = keyed.map(entry => entry[1]);
    this.body.style.height = this.shown.length * this.rowHeight + "px";
    this.none.hidden = this.shown.length > 0;
    text(this.none, this.rows.length > 0 ? "nothing matches" : this.empty);
    this.host.setAttribute("aria-rowcount", this.shown.length);
    this.draw();
  }

  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.fill();
    });
  }

  fill() {
    const { rowHeight } = this;
    this.host.style.setProperty("--scroll-bar", this.host.offsetWidth - this.host.clientWidth + "px");
    const first = Math.max(0, Math.floor(this.host.scrollTop / rowHeight) - 2);
    const last = Math.min(this.shown.length, first + Math.ceil(this.host.clientHeight / rowHeight) + 4);
    while (this.pool.length < last - first) {
      const row = element("div", { className: "row", role: "row" });
      for (const c of this.columns) row.append(this.cell(c));
      this.pool.push(row);
      this.body.append(row);
    }
    this.body.style.position = "relative";
    const room = this.roomForNames();
    this.pool.forEach((element, i) => {
      const row = this.shown[first + i];
      element.hidden = first + i >= last;
      if (element.hidden) return;
      element.at = first + i;
      element.style.top = (first + i) * rowHeight + "px";
      element.classList.toggle("chosen", this.chosen !== null && this.key?.(row) === this.chosen);
      this.columns.forEach((c, n) => this.put(element.children[n], c, row, room[n]));
    });
  }

  /// By column, how many characters of a name a cell has room for.
  roomForNames() {
    const cells = this.pool.find(row => !row.hidden)?.children;
    return this.columns.map((c, i) => {
      if (!c.name || !cells) return Infinity;
      const style = getComputedStyle(cells[i]);
      ruler.font = `${style.fontSize} ${style.fontFamily}`;
      // Where the page is narrow a cell is as wide as its name, up to a limit.
      const width = parseFloat(style.maxWidth) || cells[i].clientWidth;
      return Math.floor((width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)) / ruler.measureText("0").width);
    });
  }

  cell(c) {
    const made = element("div", { className: "cell" + (c.left ? " left" : "") + (c.name ? " name" : ""), role: "gridcell" });
    made.base = made.className;
    if (c.share) made.append(made.bar = element("div", { className: "fill" }));
    if (c.bars) made.append(histogram());
    else made.append(made.words = element("span"));
    if (c.tail) {
      made.append(made.tail = element("span", { className: "tail" }));
      made.base = made.className += " with-tail";
    }
    return made;
  }

  put(cell, c, row, room) {
    if (c.bars) {
      cell.firstChild.firstChild.setAttribute("d", outline(c.bars(row)));
      return;
    }
    const tail = c.tail?.(row) ?? "", words = c.text(row);
    text(cell.words, shortened(words.slice(0, words.length - tail.length), room - tail.length));
    if (c.tail) text(cell.tail, tail);
    if (c.share) cell.bar.style.width = Math.max(0, Math.min(1, c.share(row))) * 100 + "%";
    const mood = c.mood?.(row) ?? "";
    const name = cell.base + (mood ? " " + mood : "");
    if (cell.className !== name) cell.className = name;
  }

  explain(event) {
    const cell = event.target.closest(".cell"), row = cell?.closest(".row");
    const c = row && this.columns[[...row.children].indexOf(cell)];
    const words = c && this.shown[row.at] && (c.tip?.(this.shown[row.at]) ?? (isCut(cell, c.text(this.shown[row.at])) ? c.text(this.shown[row.at]) : ""));
    if (words) showTip(words, event.clientX, event.clientY, this);
    else hideTip(this);
  }
}

const ruler = document.createElement("canvas").getContext("2d");
const isCut = (cell, words) => cell.scrollWidth > cell.clientWidth || !cell.textContent.includes(words);
const leastWidth = columns => `calc(${columns.map(c => /^minmax\((.*),[^,]*\)$/.exec(c.width)?.[1] ?? c.width).join(" + ")})`;

const space = "http://www.w3.org/2000/svg";
function histogram() {
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 96 18");
  svg.setAttribute("width", "96");
  svg.setAttribute("height", "18");
  svg.style.verticalAlign = "middle";
  const path = document.createElementNS(space, "path");
  path.style.fill = "var(--accent)";
  svg.append(path);
  return svg;
}

function outline(values) {
  // The first is what the program set up at its start, often the most by far: it may be cut, which a gap shows.
  const most = Math.max(...values.slice(1), 1), wide = 96 / values.length;
  const bar = (i, bottom, height) => `M${(i * wide).toFixed(1)} ${bottom}v-${height.toFixed(1)}h${(wide - 0.8).toFixed(1)}V${bottom}z`;
  return values.map((v, i) => (v <= 0 ? "" : v > most ? bar(i, 18, 9) + bar(i, 6, 5) : bar(i, 18, Math.max(1, v / most * 17)))).join("");
}
