// What script/pictures does.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const built = join(root, "build/release"), pictures = join(root, "docs/pictures");
const heapwright = join(built, "bin/heapwright"), report = join(built, "picture.html");
const { chromium } = createRequire(join(built, "tests/live/browser/package.json"))("playwright-core");
mkdirSync(pictures, { recursive: true });

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

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

const compared = spawnSync(heapwright, ["compare", "--rounds", "20", "--html", report, "--", "/usr/bin/python3",
  "bench/demo/index.py"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
if (compared.status !== 0) throw new Error(`compare: exit code ${compared.status}`);
await take("compare", pathToFileURL(report).href, 640);
await browser.close();
