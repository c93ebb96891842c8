// What the pages do beyond links and forms: refreshing, dialogs, copying, charts, the live tail.
"use strict";

const $ = (selector, root) => (root || document).querySelector(selector);
const all = (selector, root) => [...(root || document).querySelectorAll(selector)];

function make(tag, css, text) {
  const element = document.createElement(tag);
  if (css) element.className = css;
  if (text !== undefined) element.textContent = text; // text, never HTML
  return element;
}

// A section is loaded anew while nobody works in it.

function isBusy(section) {
  return section.contains(document.activeElement) || $("details[open], input:checked", section) !== null
    || $("#dialog").open;
}

let refreshedMs = Date.now();
setInterval(() => {
  const section = $("#live[data-refresh]");
  if (!section || document.hidden) return;
  const state = $("[data-live]", section);
  const seconds = Number(section.dataset.refresh);
  if (isBusy(section)) {
    if (state) state.textContent = "waits while you work here";
  } else if (Date.now() - refreshedMs >= seconds * 1000) {
    refreshedMs = Date.now();
    htmx.trigger(section, "refresh");
  } else if (state) {
    state.textContent = `updates every ${seconds} s`;
  }
}, 250);

function trouble(text) {
  const banner = $("#trouble");
  banner.hidden = !text;
  banner.textContent = text;
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  // Somebody may have begun to work while the answer was on its way.
  if (target.id === "live" && event.detail.requestConfig.triggeringEvent?.type === "refresh" && isBusy(target)) {
    event.detail.shouldSwap = false;
  }
  // A page with an error may stand in a dialog; a section keeps what it showed.
  if (xhr.status >= 400 && target.id === "dialog") location.reload();
});
document.addEventListener("htmx:afterRequest", (event) => {
  const { xhr, successful } = event.detail;
  if (successful) return trouble("");
  const said = new DOMParser().parseFromString(xhr?.responseText || "", "text/html").querySelector("[role=alert]:not([hidden])");
  trouble(xhr?.status ? said?.textContent || `The console answers ${xhr.status}.`
    : "The console does not answer. What is shown is what was there before.");
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "dialog") {
    const dialog = $("#dialog");
    if (!$("#sheet", dialog)) return location.reload(); // it was refused; the page says why
    dialog.showModal();
    ($("[name=typed]", dialog) || $("[data-close]", dialog)).focus();
  }
});

$("#dialog").addEventListener("close", () => $("#dialog").replaceChildren());

if ($("[data-again]")) setTimeout(() => location.reload(), 3000);

// Clicks: one listener, so that what is loaded later works, too.

document.addEventListener("click", async (event) => {
  const at = (selector) => event.target.closest(selector);
  if (at("[data-close]") && at("dialog")) {
    event.preventDefault();
    $("#dialog").close();
  } else if (at("[data-copy]")) {
    const button = at("[data-copy]");
    const code = $("code", button.parentElement);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch { // without HTTPS there is no clipboard
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } else if (at("[data-add]")) {
    const rows = all(".pair-row");
    const row = rows[rows.length - 1].cloneNode(true);
    all("textarea", row).forEach((area) => { area.value = ""; area.textContent = ""; });
    rows[rows.length - 1].after(row);
    $("textarea", row).focus();
  } else if (at("[data-remove]")) {
    const rows = all(".pair-row");
    if (rows.length > 1) at(".pair-row").remove();
    else all("textarea", rows[0]).forEach((area) => { area.value = ""; });
  }
});

// Selections

document.addEventListener("change", (event) => {
  const form = event.target.closest("form.entries");
  if (!form || event.target.type !== "checkbox") return;
  const boxes = all("input[name=id]", form);
  const everything = $("[data-all]", form);
  if (event.target === everything) boxes.forEach((box) => { box.checked = everything.checked; });
  const count = boxes.filter((box) => box.checked).length;
  if (everything) {
    everything.checked = count === boxes.length;
    everything.indeterminate = count > 0 && count < boxes.length;
    everything.nextElementSibling.textContent = count ? `${count} selected` : "Select all";
  }
});

// Charts

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function clock(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 16);
}

function chart(place) {
  const axis = { stroke: () => color("--soft"), grid: { stroke: () => color("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const line = (name) => ({ stroke: () => color(name), width: 1.5, points: { show: false }, spanGaps: true });
  const plot = new uPlot({
    width: place.clientWidth, height: place.clientHeight, legend: { show: false }, cursor: { show: false },
    scales: { x: { range: (_, low, high) => [high - 300, high] }, y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [{ ...axis, size: 22, incrs: [60], values: (_, moments) => moments.map(clock) }, { ...axis, size: 46 }],
    series: [{}, line("--in"), line("--out")],
  }, [[], [], []], place);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: place.clientHeight })).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.redraw());
  async function load() {
    if (!document.hidden) {
      try {
        const answer = await fetch(place.dataset.rates);
        const columns = await answer.json();
        if (answer.ok && columns.length) plot.setData(columns);
      } catch { /* the next one may succeed */ }
    }
    setTimeout(load, 2000);
  }
  load();
}

// The live tail

const KEPT = 200;

function tailRow(list, [id, time, fields, left, size]) {
  const row = make("li", "entry");
  const details = make("details");
  const summary = make("summary");
  summary.append(make("span", "id", id), make("span", "age", time.slice(0, 8)));
  const shown = make("span", "fields");
  for (const [name, value] of fields) {
    const pair = make("span", "pair");
    pair.append(make("span", "name", name), " ", make("bdi", "", value));
    shown.append(pair);
  }
  if (left) shown.append(make("span", "soft", ` and ${left.toLocaleString("en")} more`));
  summary.append(shown, make("span", "size soft", size));
  const body = make("div", "body");
  details.append(summary, body);
  details.addEventListener("toggle", () => {
    if (body.childElementCount) return;
    htmx.ajax("GET", `${list.dataset.entry}&id=${id}`, { target: body, select: "#entry", swap: "innerHTML" });
  });
  row.append(details);
  return row;
}

function tail(button) {
  const list = $("[data-tail-list]");
  const state = $("[data-tail-state]");
  let source = null;
  let cursor = "";
  let shown = 0;
  let rate = null;
  let since = Date.now();

  function say(text) { if (state.textContent !== text) state.textContent = text; }
  function add(row) {
    list.prepend(row);
    while (list.childElementCount > KEPT) list.lastElementChild.remove();
  }
  function describe() {
    const seconds = (Date.now() - since) / 1000;
    if (!source || seconds < 1) return;
    const perSecond = shown / seconds;
    if (rate !== null) {
      const sampled = rate > 20 && perSecond < rate * 0.9;
      say(`${Math.round(rate).toLocaleString("en")} entries/s` + (sampled
        ? `, a sample of ${Math.round(perSecond).toLocaleString("en")}/s is shown` : ""));
    }
    shown = 0;
    since = Date.now();
  }
  function open() {
    say(cursor ? "going on …" : "connecting …");
    source = new EventSource(button.dataset.tail + (cursor ? `&after=${encodeURIComponent(cursor)}` : ""));
    source.addEventListener("begun", (event) => {
      cursor = event.lastEventId;
      say("waiting for the next entry …");
    });
    source.addEventListener("entries", (event) => {
      cursor = event.lastEventId || cursor;
      const rows = JSON.parse(event.data);
      shown += rows.length;
      rows.forEach((each) => add(tailRow(list, each)));
    });
    source.addEventListener("passed", (event) => {
      const [count, after, before] = JSON.parse(event.data);
      const row = make("li", "gap", `${count === null ? "More" : count.toLocaleString("en")} entries between ${after} and ${before} are not shown. `);
      const link = make("a", "", "Look at them");
      link.href = `${button.dataset.browse}&way=newer&at=${after}`;
      row.append(link);
      const top = list.firstElementChild;
      if (top && top.classList.contains("gap") && top.dataset.run) top.remove();
      row.dataset.run = "";
      add(row);
    });
    source.addEventListener("rate", (event) => { rate = JSON.parse(event.data); describe(); });
    source.addEventListener("trouble", (event) => trouble(JSON.parse(event.data)));
    source.onopen = () => trouble("");
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) {
        trouble("The live tail was refused: there are too many, or the session has ended.");
        pause();
      } else {
        trouble("The console does not answer. The tail goes on when it does.");
      }
    };
  }
  function pause() {
    if (source) source.close();
    source = null;
    rate = null;
    button.textContent = "Resume";
    say(cursor ? `paused at ${cursor.split("/")[0]}` : "paused");
  }
  button.addEventListener("click", () => {
    if (source) return pause();
    button.textContent = "Pause";
    open();
  });
  $("[data-tail-clear]").addEventListener("click", () => list.replaceChildren());
  window.addEventListener("pagehide", () => source && source.close());
  open();
}

document.addEventListener("DOMContentLoaded", () => {
  all("[data-rates]").forEach(chart);
  all("[data-tail]").forEach(tail);
});
