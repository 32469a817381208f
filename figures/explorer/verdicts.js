// Claims with their bound, interval and seeds; a click shows the evidence. Each line has
// the numbers of the first condition.

import { short } from "numbers";
import { color } from "pictures";
import { $, choose, drawAll, make, payload, verdicts } from "main";

const MARKS = { reproduced: "✓", contradicted: "✗", inconclusive: "–" };
let shown = null;

export function drawVerdicts() {
  $("verdicts").hidden = !verdicts.length;
  $("claims").replaceChildren(...verdicts.flatMap((row, index) => {
    const [[name, number]] = Object.entries(row.conditions);
    const line = make("button", { className: "claim" },
      make("span", {}, make("b", { className: row.verdict, textContent: `${MARKS[row.verdict] ?? ""} ${row.verdict}` }), make("br"),
        [row.claim, row.case].filter(Boolean).join(", ")),
      make("span", {}, row.statement, make("br"), make("small", { textContent: `asked: ${name} ${number["must be"]}` }),
        make("br"), make("small", { className: "reason", textContent: row.reason })), axis(number));
    line.setAttribute("aria-expanded", index === shown);
    line.addEventListener("click", () => open(index, row));
    return index === shown ? [line, evidence(row)] : [line];
  }));
}

async function open(index, row) {
  const place = payload.networks.findIndex(({ name }) => row.runs?.includes(name));
  shown = shown === index ? null : index;
  if (shown !== null && place >= 0) await choose(place);
  drawAll();
}

// The interval as a bar, seeds as points, the bound as a dashed line.
function axis(number) {
  const bounds = [...String(number["must be"]).matchAll(/-?[\d.]+(?:e[+-]?\d+)?/g)].map(Number);
  const ends = (number.ci95 ?? []).filter((end) => end !== null), seeds = number.per_seed ?? [];
  const every = [...bounds, ...ends, ...seeds, number.value].filter((value) => value !== null);
  const low = Math.min(...every), high = Math.max(...every), x = (value) => 10 + 280 * (value - low) / (high - low || 1);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 300 34");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${short(number.value)}, interval ${ends.map((end) => short(end)).join(" to ")}, ${number["must be"]}`);
  const put = (tag, fields, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(fields).forEach(([name, value]) => element.setAttribute(name, value));
    element.textContent = text;
    svg.append(element);
  };
  put("line", { x1: 10, x2: 290, y1: 12, y2: 12, stroke: color("line") });
  bounds.forEach((bound) => {
    put("line", { x1: x(bound), x2: x(bound), y1: 0, y2: 24, stroke: color("text"), "stroke-dasharray": "3 2", "stroke-width": 1.5 });
    put("text", { x: x(bound), y: 33, "text-anchor": x(bound) > 200 ? "end" : "middle" }, `bound ${short(bound)}`);
  });
  if (ends.length === 2) put("rect", { x: x(ends[0]), y: 9, width: Math.max(x(ends[1]) - x(ends[0]), 2), height: 6, fill: color("text"), opacity: 0.45 });
  seeds.forEach((seed) => put("circle", { cx: x(seed), cy: 12, r: 3, fill: "none", stroke: color("text"), "stroke-width": 1.3 }));
  if (number.value !== null) put("circle", { cx: x(number.value), cy: 12, r: 3.5, fill: color("text") });
  return svg;
}

function evidence(row) {
  const table = make("table");
  const add = (name, { value, ci95 }, bound = "") => table.append(make("tr", {},
    ...[name, short(value), ci95 && ci95[0] !== null ? `${short(ci95[0])} to ${short(ci95[1])}` : "", bound].map((textContent) => make("td", { textContent }))));
  Object.entries(row.conditions).forEach(([name, number]) => add(name, number, `must be ${number["must be"]}`));
  Object.entries(row.notes ?? {}).forEach(([name, number]) => add(name, number));
  return make("div", { className: "evidence" }, make("p", { textContent: `Seeds ${row.seeds.join(", ")}. Figure: ${row.figure || "–"}.` }), table);
}
