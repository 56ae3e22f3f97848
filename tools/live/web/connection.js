// The server: its events while they are wanted, its answers when asked. Knows whether it is there. In a snapshot the answers lie in the page
// (snapshot_page.cpp says how), and there is no server.
import { rewriteAddress } from "./address.js";
import { text, $ } from "./dom.js";

/// Null where there is a server.
export let snapshot = null;

/// To be called before anything is asked.
export async function openSnapshot() {
  const part = $("snapshot");
  if (!part) return;
  document.body.classList.add("kept");
  const packed = Uint8Array.from(atob(part.textContent), letter => letter.charCodeAt(0));
  snapshot = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  shownProcess ??= snapshot.process;
}

function answerWithin(path, parameters) {
  const asked = Object.entries(parameters).filter(([name, value]) => name !== "process" && value !== "" && value != null).sort(([a], [b]) => (a < b ? -1 : 1));
  const question = path + asked.map(([name, value], i) => `${i === 0 ? "?" : "&"}${name}=${value}`).join("");
  const { common, processes } = snapshot, name = shownProcess ?? "";
  const kept = Object.hasOwn(processes, name) ? processes[name] : Object.values(processes)[0];
  const answer = common[question] ?? kept[question];
  if (!answer) throw new Error("this is not in the snapshot");
  return answer;
}

/// Which of the server's processes this page shows; empty: the first. Null: none was chosen, so the first too.
export let shownProcess = new URLSearchParams(location.search).get("process");
const asked = (path, parameters) => `${path}?${new URLSearchParams(Object.entries({ process: shownProcess, ...parameters }).filter(([, value]) => value !== "" && value != null))}`;

export class Connection {
  /// `on.state(state)`, `on.lost()`: no longer there, tried again by itself.
  constructor(on) {
    this.on = on;
    this.interval = 1000;
    // A page out of sight needs no events.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
  }

  open() {
    this.close();
    if (snapshot && !this.isOver) return this.on.state(answerWithin("/api/state", {}));
    if (this.isPaused || document.hidden || this.isOver) return;
    this.source = new EventSource(asked("/api/events", { interval: this.interval }));
    this.source.addEventListener("state", event => this.on.state(JSON.parse(event.data)));
    this.source.onerror = () => {
      this.on.lost();
      // A refusal (a full server, say) is final for an EventSource; not for us.
      if (this.source?.readyState === EventSource.CLOSED) this.again = setTimeout(() => this.open(), 2000);
    };
  }

  close() {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    this.open();
  }

  every(milliseconds) {
    this.interval = milliseconds;
    this.open();
  }

  /// The program has ended: nothing will change any more.
  finish() {
    this.isOver = true;
    this.close();
  }

  async get(path, parameters = {}) {
    if (snapshot) return answerWithin(path, parameters);
    return (await answerTo(asked(path, parameters))).json();
  }

  async control(order) {
    await answerTo(asked("/api/control"), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order) });
  }
}

/// Throws an error whose message a person can read; `isLost`: there was no answer.
async function answerTo(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw Object.assign(new Error("the connection is lost"), { isLost: true });
  }
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer;
}

/// From now on the page shows this process, also when it is loaded again.
export function showProcess(name) {
  shownProcess = name;
  const address = new URL(location);
  address.searchParams.set("process", name);
  rewriteAddress(address);
}

/// Files to be saved are of the process shown.
export function linkFiles() {
  for (const link of document.querySelectorAll("a.line")) link.href = asked(link.getAttribute("href"));
}

/// Says above the view what a person must know; each `key` once, null takes it away.
export function note(key, words, isBad = false) {
  const notes = $("notes");
  let found = [...notes.children].find(child => child.dataset.key === key);
  if (!words) return found?.remove();
  if (!found) {
    found = document.createElement("div");
    found.dataset.key = key;
    notes.append(found);
  }
  found.className = "note" + (isBad ? " bad" : "");
  text(found, words);
}
