// The page: which view is seen, what the keys do, what the process's state means to a person.
import { addressChanged, keepAddress, readAddress } from "./address.js";
import { Connection, linkFiles, note, openSnapshot, showProcess, shownProcess, snapshot } from "./connection.js";
import { $, element, text } from "./dom.js";
import { bytes, clock, exact, round, several } from "./format.js";
import { LeaksView } from "./leaks.js";
import { MemoryView } from "./memory.js";
import { MistakesView } from "./mistakes.js";
import { NowView } from "./now.js";
import { WhereView } from "./where.js";

const names = ["now", "where", "leaks", "memory", "mistakes"];
let state = null, seen = "now", asked = readAddress().view, isLost = false;
const hadAddress = location.hash !== "";

const connection = new Connection({
  state: next => {
    const wasLost = isLost;
    isLost = false;
    // It has executed another program: all that was shown is of the one before.
    if (state && !isSame(state.process, next.process)) return startAgain();
    if (!state) views.now.begin().catch(() => {});
    state = next;
    show();
    if (wasLost) views[seen].refresh();
    if (snapshot || !["running", "replaced"].includes(next.process.state)) connection.finish();
  },
  lost: () => {
    isLost = true;
    showStatus();
  },
});
function startAgain() {
  if (shownProcess === null) showProcess("");  // and no other one
  location.reload();
}
const isSame = (a, b) => a.id === b.id && a.started === b.started;
const views = { now: new NowView(connection), where: new WhereView(connection), leaks: new LeaksView(connection), memory: new MemoryView(connection), mistakes: new MistakesView(connection) };

// --- theme: as the system, or as chosen here

const system = matchMedia("(prefers-color-scheme: dark)");
function setTheme(choice) {
  if (choice) localStorage.setItem("theme", choice);
  else localStorage.removeItem("theme");
  useTheme();
}
function useTheme() {
  const chosen = localStorage.getItem("theme") ?? "";
  $("theme").value = chosen;
  document.documentElement.classList.toggle("dark", chosen ? chosen === "dark" : system.matches);
  for (const view of Object.values(views)) view.restyle();
}
system.addEventListener("change", useTheme);
$("theme").addEventListener("change", event => setTheme(event.target.value));

// --- views

/// Without the probe there is nothing to be seen of some, and without mistakes nothing of these.
const isThere = name => $("tab-" + name).offsetParent !== null;

function see(name, focus = false) {
  if (!isThere(name)) return;
  seen = name;
  for (const other of names) {
    const tab = $("tab-" + other), isSeen = other === name;
    tab.setAttribute("aria-selected", String(isSeen));
    tab.tabIndex = isSeen ? 0 : -1;
    $("view-" + other).hidden = !isSeen;
    if (isSeen && focus) tab.focus();
  }
  addressChanged();
  views[name].seen();
  if (state) showNotes();
}
for (const name of names) {
  $("tab-" + name).addEventListener("click", () => see(name));
  $("tab-" + name).addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const there = names.filter(isThere);
    if (step) see(there[(there.indexOf(name) + step + there.length) % there.length], true);
  });
}

// --- what the state means

/// What it was started as: the file behind that may have another name.
function nameOf({ program, arguments: [started] }) {
  const name = started || program;
  return name.slice(name.lastIndexOf("/") + 1);
}

function show() {
  const p = state.process;
  const program = nameOf(p);
  document.title = `${program} – heapwright live`;
  text($("program"), program || "process");
  const threads = p.has_probe ? ` · ${several(state.threads.filter(t => t[2] === "alive").length, "thread")}` : "";
  text($("about"), `process ${p.id} · ${p.arguments.join(" ")} · on ${p.allocator.slice(p.allocator.lastIndexOf("/") + 1) || "an unknown malloc"}${threads}`);
  $("about").title = [p.program, p.arguments.join(" "), `malloc of ${p.allocator}`, p.forked_from ? `forked from ${p.forked_from}, with ${bytes(p.inherited_bytes)} that were live there` : ""].filter(Boolean).join("\n");
  for (const what of ["state", "stacks"]) $("save-" + what).download = `heapwright-${p.id}-${what}.json`;
  document.body.classList.toggle("bare", !p.has_probe);
  $("tab-mistakes").hidden = !(p.mistakes > 0);
  if (asked === "mistakes") see(asked);
  // What it is to be compared with is what somebody wants to see.
  if (asked !== null && !hadAddress && !snapshot && state.other_run) {
    views.where.use({ since: "other" });
    see("where");
  }
  asked = null;
  if (!isThere(seen)) see("now");
  showStatus();
  showNotes();
  showControls();
  views.now.set(state, seen === "now");
  views.where.set_state(state, seen === "where");
  views.leaks.set_state(state, seen === "leaks");
  views.memory.set_state(state, seen === "memory");
  views.mistakes.set_state(state, seen === "mistakes");
}

/// How the shown process has ended, in the words of the server that has started it: "killed by SIGSEGV".
let howItEnded = null;

function showStatus() {
  const p = state?.process;
  const at = p?.ended ? ` at ${clock(p.ended)}` : "";
  const withoutExit = !howItEnded ? "program is gone (killed, or ended without exit): last figures" : howItEnded.startsWith("killed") ? `program was ${howItEnded} at about ${clock(state.at)}: last figures` : `program has ended without exit (${howItEnded}): last figures`;
  const ends = { exited: `program has ended${at}${howItEnded ? ` (${howItEnded})` : ""}: last figures`, killed: withoutExit, replaced: "program has become another by exec: last figures", lost: "the segment can no longer be read: last figures", gone: "program is gone: last figures", left: "saved while the program ran" };
  const [words, mood] = p && snapshot ? [`snapshot of ${new Date(snapshot.made * 1000).toLocaleString("en-GB")}${ends[p.state] ? `: ${ends[p.state]}` : ""}`, ""] : p && ends[p.state] ? (isLost ? [`${ends[p.state]}; connection lost, retrying`, "bad"] : [ends[p.state], "warn"])
    : isLost ? ["connection lost, retrying", "bad"]
    : !p ? ["connecting", ""]
    : connection.isPaused ? [`paused at ${clock(state.at)}`, "warn"]
    : p.has_probe && !p.is_counting ? ["dormant: not counting", "warn"] : ["live", "good"];
  text($("status"), words);
  $("status").className = "status " + mood;
}

function showNotes() {
  const p = state.process;
  note("late", p.counting_since && !p.counts_from_start ? `Counting began at ${clock(p.counting_since)}, after the program did: what was allocated before is not known, so “live” is the change since then, and may be negative.` : null);
  note("no-probe", p.has_probe ? null : "This process has no probe: shown is what libheapwright says of its heap, “live” with what threads keep. With the probe (heapwright live -- COMMAND) there are counts, threads and call stacks too.");
  note("estimated", p.is_of_samples ? "The probe counts samples alone (--estimate): live bytes, allocations, size classes, threads and peaks are estimates." : null);
  note("dormant", p.has_probe && !p.is_counting && p.state === "running" ? (p.counting_since ? "The probe does not count now: figures stand still. “More” has the switch." : "The probe does not count yet: there are no figures. “More” has the switch.") : null);
  note("lost-samples", p.lost_samples > 0 ? `${exact(p.lost_samples)} samples were lost for want of room: where memory is allocated is incomplete. A larger sampling interval needs less room.` : null);
  note("mistakes", p.mistakes > 0 && seen !== "mistakes" ? `The malloc has found ${several(p.mistakes, "mistake")} of the program with memory: Mistakes (5) has what and where.` : null, true);
  note("torn", p.is_torn ? "The program stopped while it moved figures of ended threads: some may count twice or not at all." : null, true);
}

// --- which process

/// The last of the list: not a process, but those that are left out.
const openEnded = "…";

/// What the process is called now: some programs say in their arguments what each of their processes does.
const titleOf = row => {
  const isTitle = row.arguments.length === 1 && row.arguments[0].includes(" ");
  return isTitle ? row.arguments[0].slice(0, 60) : nameOf(row);
};

/// Whether the list has those too that had ended before the server came to a process that ran.
let withEnded = false;

async function askProcesses() {
  const answer = await connection.get("/api/processes", { process: null, ended: withEnded ? "all" : null });
  if (!withEnded && answer.ended_before > 0 && shownProcess && !answer.rows.some(row => isNamed(row, shownProcess))) {
    withEnded = true;
    return askProcesses();
  }
  return { ...answer, rows: answer.rows.map(row => Object.fromEntries(answer.columns.map((name, i) => [name, row[i]]))) };
}

/// Whether a row of the server's is of that name or process id.
const isNamed = ([name, id], wanted) => name === wanted || String(id) === wanted;

/// The first process is often one that has only started another. So the page shows the process with
/// most live bytes, if it has 1 MiB or more, and the first process else. A process id in the page's
/// address, or in the command line of `live`, comes before that.
async function chooseProcess() {
  try {
    const { rows, running, is_asked_for: isAskedFor } = await askProcesses();
    if (shownProcess) {
      const named = rows.find(row => isNamed([row.name, row.id], shownProcess));
      if (!named) note("no-process", `There is no process ${shownProcess} here: shown is ${titleOf(rows[0])} ${rows[0].id}.`);
      showProcess(named?.name ?? "");
      return;
    }
    if (shownProcess !== null) return;
    if (isAskedFor) return;
    const [first] = rows, among = running > 0 ? rows.filter(row => row.running) : rows;
    const largest = among.reduce((most, row) => (row.live > most.live ? row : most), among.includes(first) ? first : among[0]);
    if (largest !== first && largest.live > Math.max(first.live, 2 ** 20)) showProcess(largest.name);
  } catch { /* the connection's own state says it */ }
}

/// A process that has grown since the page was loaded is named, and not changed to.
function tellOfLarger(rows, isAskedFor) {
  const shown = rows.find(row => row.name === shownProcess) ?? rows[0];
  const largest = rows.filter(row => row.running).reduce((most, row) => (row.live > most.live ? row : most), shown);
  const isNews = !shownProcess && !isAskedFor && largest.live > Math.max(10 * shown.live, 2 ** 20);
  note("larger", isNews ? `Most live bytes are in another process: ${titleOf(largest)} ${largest.id} has ${bytes(largest.live)}. It can be chosen above.` : null);
}

/// After the end of the program no events come. Whether the server is there is known from this list.
function noteAnswer(isThere) {
  if (snapshot || !connection.isOver || isLost === !isThere) return;
  isLost = !isThere;
  showStatus();
}

/// Options are the same elements from one answer to the next: few are new, and an open list stays.
function listProcesses(rows, endedBefore) {
  const known = new Map([...$("process").options].map(option => [option.value, option]));
  const option = (value, words) => {
    const made = known.get(value) ?? element("option", { value });
    text(made, words);
    return made;
  };
  const wanted = rows.map(row => option(row.name, `${row.running ? "" : "ended: "}${titleOf(row)} ${row.id} · ${bytes(row.live)}`));
  if (endedBefore > 0 && !withEnded) wanted.push(option(openEnded, `… ${exact(endedBefore)} that ended before live began`));
  if (wanted.some((one, i) => one !== $("process").options[i]) || wanted.length !== known.size) $("process").replaceChildren(...wanted);
  $("process").value = shownProcess || rows[0].name;
  $("process").hidden = wanted.length < 2;
  document.querySelector("header").classList.toggle("several", wanted.length > 1);
}

async function fillProcesses() {
  if (document.hidden) return;
  try {
    const { rows, ...answer } = await askProcesses();
    noteAnswer(true);
    // What somebody is choosing from stands still.
    if (document.activeElement !== $("process")) listProcesses(rows, answer.ended_before);
    $("file").hidden = answer.file === null;
    text($("file"), `file ${answer.file}`);
    $("family").hidden = answer.running < 2;
    tellOfLarger(rows, answer.is_asked_for);
    text($("family"), `${exact(answer.running)} processes run · ${bytes(answer.live)} live`);
    const known = (rows.find(row => row.name === shownProcess) ?? rows[0]).how_it_ended;
    if (known !== howItEnded) {
      howItEnded = known;
      showStatus();
    }
  } catch (trouble) {
    noteAnswer(!trouble.isLost);
  }
}

/// Once a second, as processes come and go; less often where there are so many of them that the
/// answer takes long, and where figures are to come less often.
async function followProcesses() {
  const begin = performance.now();
  await fillProcesses();
  if (snapshot) return;
  const took = performance.now() - begin;
  setTimeout(followProcesses, Math.min(5000, Math.max(1000, connection.interval, 50 * took)));
}

$("process").addEventListener("change", async event => {
  if (event.target.value !== openEnded) {
    location.search = new URLSearchParams({ process: event.target.value });
    return;
  }
  withEnded = true;
  event.target.blur();
  await fillProcesses();
  event.target.focus();
  try {
    event.target.showPicker();
  } catch { /* it is opened by hand */ }
});

const steps = [1, 4096, 65536, 524288, 4194304, 33554432];
// Until then a state may be older than the last click on the box, and does not change it.
let countingSettles = 0;
function showControls() {
  const p = state.process, canControl = state.may_control && p.state === "running";
  if (performance.now() >= countingSettles) $("counting").checked = p.is_counting;
  for (const id of ["counting", "sampling", "reset", "mark"]) $(id).disabled = !canControl;
  $("pause").disabled = p.state !== "running";
  const all = [...new Set(p.interval_adapts ? steps : [...steps, p.interval])].filter(v => v > 0).sort((a, b) => a - b);
  // Where samples alone are counted, there is nothing without them.
  const wanted = (p.is_of_samples ? all : [...all, 0]).join();
  if ($("sampling").dataset.all !== wanted) {
    $("sampling").dataset.all = wanted;
    $("sampling").replaceChildren(element("option", { value: "auto", textContent: "as 0.8 % of the time allows" }), ...all.map(v => element("option", { value: String(v), textContent: v === 1 ? "block (slow)" : round(bytes(v)) })), ...(p.is_of_samples ? [] : [element("option", { value: "0", textContent: "never" })]));
  }
  if (document.activeElement !== $("sampling")) $("sampling").value = p.interval_adapts ? "auto" : String(p.interval);
}

// --- controls

async function order(what) {
  try {
    await connection.control(what);
    note("control", null);
  } catch (trouble) {
    countingSettles = 0;
    note("control", `Not done: ${trouble.message}`, true);
  }
}

function pause() {
  connection.pause(!connection.isPaused);
  text($("pause"), connection.isPaused ? "Follow" : "Pause");
  showStatus();
}
function askForMark() {
  if ($("mark").disabled) return;
  $("mark-name").value = `mark ${(state?.marks.length ?? 0) + 1}`;
  $("mark-dialog").showModal();
  $("mark-name").select();
}

$("memory-refresh").addEventListener("click", () => views.memory.refresh());
$("pause").addEventListener("click", pause);
$("every").addEventListener("change", event => connection.every(Number(event.target.value)));
$("mark").addEventListener("click", askForMark);
$("mark-dialog").addEventListener("close", () => {
  const name = $("mark-name").value.trim();
  if ($("mark-dialog").returnValue === "ok" && name) order({ mark: name });
});
$("counting").addEventListener("change", event => {
  countingSettles = performance.now() + 2000;
  order({ counting: event.target.checked });
});
$("sampling").addEventListener("change", event => order({ interval: event.target.value === "auto" ? "auto" : Number(event.target.value) }));
$("reset").addEventListener("click", () => order({ reset_peak: true }));
document.addEventListener("click", event => {
  // What is done at once leaves nothing more to choose.
  if (!$("more").contains(event.target) || event.target.tagName === "BUTTON") $("more").open = false;
});

$("help").addEventListener("click", () => $("help-dialog").showModal());

/// Nothing is searched for any more, and the keys act again.
function endSearch(field) {
  field.value = "";
  field.dispatchEvent(new Event("input"));
  // On the table or graph that was searched.
  const searched = $(field.getAttribute("aria-controls"));
  (searched.querySelector("canvas") ?? searched).focus({ preventScroll: true });
}
// A list that was chosen from would keep the keys to itself.
document.addEventListener("change", event => {
  if (event.target.tagName === "SELECT") event.target.blur();
});

document.addEventListener("keydown", event => {
  if (event.key === "Escape") {
    $("more").open = false;
    if (event.target === $("process")) event.target.blur();
    if (event.target.type === "search") endSearch(event.target);
    return;
  }
  // The dialog's field has the focus for a moment after the dialog is gone.
  const isField = event.target.tagName === "SELECT" || (event.target.tagName === "INPUT" && event.target.type !== "checkbox");
  const types = isField && event.target !== $("mark-name");
  if (event.ctrlKey || event.metaKey || event.altKey || types || $("mark-dialog").open || $("help-dialog").open) return;
  const act = { 1: () => see("now", true), 2: () => see("where", true), 3: () => see("leaks", true), 4: () => see("memory", true), 5: () => see("mistakes", true), m: askForMark, r: () => views[seen].refresh(),
    "?": () => $("help-dialog").showModal(), "/": () => views[seen].search.focus(), " ": ["BUTTON", "SUMMARY", "INPUT"].includes(event.target.tagName) ? null : pause }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

async function begin() {
  useTheme();
  await openSnapshot();
  asked = readAddress(snapshot?.view).view;
  await chooseProcess();
  const { view, parameters } = readAddress(snapshot?.view);
  if (names.includes(view)) views[view].use(parameters);
  keepAddress(() => ({ view: seen, parameters: views[seen].parameters }));
  linkFiles();
  followProcesses();
  see(names.includes(asked) && isThere(asked) ? asked : "now");
  connection.open();
}
begin();
