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
    const live = spawn(heapwright, ["live", "--no-browser", "--", "./leaking_server", "120", "2000"],
      { cwd: join(built, "bin"), stdio: ["ignore", "ignore", "pipe"] });
    const address = await new Promise(resolve => {
      let told = "";
      live.stderr.on("data", part => {
        const found = (told += part).match(/http:\S+/);
        if (found) resolve(found[0]);
      });
    });
    await new Promise(resolve => setTimeout(resolve, 60_000));
    await take("live", address, 320, async page => {
      await page.waitForFunction(() => document.getElementById("live").textContent !== "");
      await page.keyboard.press("3");
      await page.waitForTimeout(1500);
    });
    live.kill("SIGTERM");
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
