// What script/pictures does.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const built = join(root, "build/release"), pictures = join(root, "docs/pictures"), reports = join(built, "pictures");
const heapwright = join(built, "bin/heapwright");
const { chromium } = createRequire(join(built, "tests/live/browser/package.json"))("playwright-core");
for (const folder of [pictures, reports]) mkdirSync(folder, { recursive: true });

const session = ["sqlite3", ":memory:", ".read bench/demo/orders.sql"];

const makers = {
  async live() {
    const { live, address } = await watch(join(built, "bin"), [], "./leaking_server", "120", "2000");
    await new Promise(resolve => setTimeout(resolve, 60_000));
    await take("live", address, 320, async page => {
      await page.waitForFunction(() => document.getElementById("live").textContent !== "");
      await page.keyboard.press("3");
      await page.waitForTimeout(1500);
    });
    live.kill("SIGTERM");
  },
  async python() {
    await watchShop("python", ["/usr/bin/python3", "bench/demo/shop.py"]);
  },
  async node() {
    await watchShop("node", ["node", "bench/demo/shop.js"]);
  },
  /** The shop after a hundred requests and after three hundred. */
  async difference() {
    const runs = [100, 300].map(many => [many, join(reports, `${many}.saved`)]);
    for (const [many, file] of runs) {
      const { live } = await watch(root, ["--save", file, "--exit-with-program"], "/usr/bin/python3", "bench/demo/shop.py", "8123");
      for (let done = 0; done < many;) done += await ask(8123) ? 1 : 0;
      live.kill("SIGTERM");
      await new Promise(resolve => live.on("exit", resolve));
    }
    const page = join(reports, "difference.html");
    run(root, "diff", ...runs.map(([, file]) => file), "--html", page);
    await take("difference", pathToFileURL(page).href, 640, page => page.waitForTimeout(1500));
  },
  async compare() {
    const report = join(reports, "compare.html");
    run(root, "compare", "--rounds", "20", "--html", report, "--", "/usr/bin/python3", "bench/demo/index.py");
    await take("compare", pathToFileURL(report).href, 640);
  },
  async replay() {
    run(root, "record", "-o", join(reports, "session.trace"), "--", ...session);
    run(reports, "replay", "session.trace", "--html", "replay.html");
    await take("replay", pathToFileURL(join(reports, "replay.html")).href, 900);
  },
  async fit() {
    const folder = join(reports, "fit");
    run(root, "fit", "--for", "memory", "--minutes", "3", "-o", folder, "--", ...session);
    await take("fit", pathToFileURL(join(folder, "report.html")).href, 900);
  },
};

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(makers);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const name of wanted) await makers[name]();
await browser.close();

function run(folder, ...words) {
  const { status } = spawnSync(heapwright, words, { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) throw new Error(`${words[0]}: exit code ${status}`);
}

/** `heapwright live` with this command, and the address of its page. */
async function watch(folder, options, ...command) {
  const live = spawn(heapwright, ["live", "--no-browser", ...options, "--", ...command], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise(resolve => {
    let told = "";
    live.stderr.on("data", part => {
      const found = (told += part).match(/http:\S+/);
      if (found) resolve(found[0]);
    });
  });
  return { live, address };
}

/** A page of the shop; null: it is not there yet, or any more. */
async function ask(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/ann`).then(answer => answer.text()).catch(() => null);
  if (answer === null) await new Promise(resolve => setTimeout(resolve, 50));
  return answer;
}

/** A shop under load for a minute: what it keeps, and from where. */
async function watchShop(name, command) {
  const port = 8123, until = Date.now() + 60_000;
  const { live, address } = await watch(root, [], ...command, String(port));
  while (Date.now() < until) {
    await ask(port);
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  const show = key => async page => {
    await page.waitForFunction(() => document.getElementById("live").textContent !== "");
    await page.keyboard.press(key);
    await page.waitForTimeout(1500);
  };
  await take(`${name}-leaks`, address, 320, show("3"));
  await take(`${name}-where`, address, 760, show("2"));
  live.kill("SIGTERM");
}

/** The page at this address, in both colours, once it is as `prepare` leaves it. */
async function take(name, url, height, prepare = () => {}) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport: { width: 1120, height }, colorScheme });
    await page.goto(url);
    await prepare(page);
    await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) });
    await page.close();
  }
}
