// Makes the page one file: page.html with its script and style in it, and the policy that allows these two, by their hashes, and nothing else.
//
//   node bundle.mjs PACKAGES OUT    writes OUT/live.html and OUT/live_page.cpp
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [packages, out] = process.argv.slice(2).map(path => resolve(path));
const modules = join(packages, "node_modules");
const esbuild = createRequire(join(packages, "package.json"))("esbuild");

const bundled = async (entry, options) => {
  const result = await esbuild.build({
    entryPoints: [join(here, entry)], nodePaths: [modules], bundle: true, write: false, minify: true, charset: "utf8",
    target: ["es2022", "chrome100", "firefox100", "safari16"], legalComments: "none", logLevel: "warning", ...options,
  });
  return result.outputFiles[0].text.trim();
};

// A function as replacement: $ has no meaning in it. "</" would end the element it is in.
const script = (await bundled("main.js", { format: "iife" })).replaceAll("</script", "<\\/script");
const style = await bundled("main.css", {});
const page = readFileSync(join(here, "page.html"), "utf8")
  .replace("/*STYLE*/", () => style).replace("/*SCRIPT*/", () => script);

const hash = text => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
  "default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, "connect-src 'self'", "img-src data:",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join("; ");

// As numbers: a compiler need not take a text of this length.
const bytes = Buffer.from(page);
const rows = [];
for (let i = 0; i < bytes.length; i += 32) rows.push([...bytes.subarray(i, i + 32)].join(",") + ",");
writeFileSync(join(out, "live.html"), page);
writeFileSync(join(out, "live_page.cpp"), `// Made by web/bundle.mjs.
#include "page.hpp"

static constexpr unsigned char text[] = {
${rows.join("\n")}
};
const std::string_view heapwright::tool::live_page(reinterpret_cast<const char*>(text), sizeof text);
const std::string_view heapwright::tool::live_page_policy("${policy}");
`);
