// The site of the docs in a real browser. Usage: node site.mjs SCENARIO URL [OPTIONS as JSON]; prints one JSON object.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.env.PAGE_MODULES, "package.json"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [scenario, url, given] = process.argv.slice(2);
const options = given ? JSON.parse(given) : {};
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const trouble = [];

const open = async (more = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...more });
  const page = await context.newPage();
  page.on("console", (said) => { if (said.type() === "error") trouble.push(`console: ${said.text()}`); });
  page.on("pageerror", (error) => trouble.push(`script: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob|about):/.test(request.url())) trouble.push(`elsewhere: ${request.url()}`);
  });
  return page;
};

const seriousFaults = async (page) => {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
};

const scenarios = {
  async looks() {
    const found = {};
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [380, 1280]) {
        const page = await open({ colorScheme, viewport: { width, height: 900 } });
        for (const name of options.pages) {
          await page.goto(`${url}${name}`, { waitUntil: "load" });
          const key = `${name} ${width} ${colorScheme}`;
          const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
          if (wide > 0) found[key] = [`${wide} pixels wider than the window`];
          if (options.shots) await page.screenshot({ path: `${options.shots}/${name.replaceAll("/", "_")}-${width}-${colorScheme}.png` });
          if (options.faults && name === options.pages[0]) found[key] = [...(found[key] ?? []), ...(await seriousFaults(page))];
        }
        await page.context().close();
      }
    }
    return { found: Object.fromEntries(Object.entries(found).filter(([, said]) => said.length)) };
  },
  async searches() {
    const told = [];
    for (const width of options.widths) {
      const page = await open({ viewport: { width, height: 900 } });
      await page.goto(`${url}index.html`, { waitUntil: "load" });
      await page.locator('label[for="__search"]:visible, .md-search__button:visible').first().click();
      await page.getByRole("combobox", { name: "Search" }).fill(options.words);
      const found = page.locator(`a[role=option][href*="${options.expects}"]`).first();
      await found.waitFor();
      if (options.shots) await page.screenshot({ path: `${options.shots}/search-${url.slice(0, 4)}-${width}.png` });
      await found.click();
      await page.waitForURL((now) => !now.pathname.endsWith("/index.html"));
      told.push({ width, address: page.url(), heading: await page.locator("h1").first().innerText(), marked: await page.locator("mark").count() });
      await page.context().close();
    }
    return { told };
  },
  async walks() {
    // From the front page to the first guide, the way that a reader of this width has.
    const told = [];
    for (const width of [1280, 380]) {
      const page = await open({ viewport: { width, height: 900 } });
      await page.goto(`${url}index.html`, { waitUntil: "load" });
      const tabs = await page.locator(".md-tabs__link").allInnerTexts();
      const commands = await page.locator("article pre code").first().evaluate((code) => ({
        text: code.textContent, bottom: code.getBoundingClientRect().bottom,
      }));
      const pictures = await page.locator("article img").evaluateAll((all) => all.map((one) => one.complete && one.naturalWidth > 0));
      if (width === 380) {
        await page.locator('label[for="__drawer"]:visible').first().click();
        await page.locator(".md-nav__link", { hasText: /^\s*Guides\s*$/ }).filter({ visible: true }).first().click();
        await page.locator(".md-nav__link", { hasText: /^\s*Clients\s*$/ }).filter({ visible: true }).first().click();
        await page.locator(".md-nav__link:visible", { hasText: "Use Codex" }).first().click();
      } else {
        await page.locator(".md-tabs__link", { hasText: "Guides" }).click();
        await page.locator(".md-nav__link:visible", { hasText: "Use Codex" }).first().click();
      }
      await page.waitForURL(/codex\.html/);
      told.push({ width, tabs, commands, pictures, heading: await page.locator("h1").first().innerText() });
      await page.context().close();
    }
    return { told };
  },
  async darkens() {
    // System, light, dark: the button goes round, and the next page remembers.
    const page = await open({ colorScheme: "light" });
    const scheme = () => page.evaluate(() => document.body.getAttribute("data-md-color-scheme"));
    await page.goto(`${url}index.html`, { waitUntil: "load" });
    const before = await scheme();
    await page.locator('label[for="__palette_1"]:visible').click();
    await page.locator('label[for="__palette_2"]:visible').click();
    const after = await scheme();
    await page.goto(`${url}getting-started.html`, { waitUntil: "load" });
    return { before, after, next: await scheme() };
  },
};

try {
  console.log(JSON.stringify({ ...(await scenarios[scenario]()), trouble }));
} finally {
  await browser.close();
}
