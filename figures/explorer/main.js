// The explorer: one state, in the URL's hash, and what is shown of it.

import { connectControls, describeControls } from "controls";
import { openNetwork, row } from "data";
import { drawLayer, drawStrip } from "layers";
import { connectLive } from "live";
import { explain, interval, mean, short, withInterval, worded } from "numbers";
import { color, drawMap, drawOutput, makeScale } from "pictures";
import { drawVerdicts } from "verdicts";

export const $ = (id) => document.getElementById(id);
export const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
};

// What the page shows. `at` is a position (see data.js); `seed` -1 means all; `box` is a region of
// the map: first and last cell across, first and last cell up.
export const state = {
  network: 0, at: [], step: 0, seed: -1, layer: null, score: "", axes: [0, 1], box: null, bright: false,
};
export let payload, network;
let opened = [];

export async function start(text) {
  payload = JSON.parse(text);
  await openFromHash();
  connectControls();
  window.addEventListener("hashchange", () => location.hash.slice(1) !== hash() && openFromHash());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  $("page").hidden = false;
  drawAll();
  document.body.dataset.ready = "yes";
}

export async function choose(index, wanted = {}) {
  opened[index] ??= openNetwork(payload.networks[index]);
  network = await opened[index];
  const names = Object.keys(network.scores);
  Object.assign(state, {
    network: index, axes: network.axes.length > 1 ? [0, 1] : [0], step: network.steps.length - 1,
    score: names.includes(state.score) ? state.score : names[0], box: null, layer: null, seed: -1,
  });
  state.at = network.place(tellingCell());
  Object.assign(state, wanted);
  state.at = state.at.map((place, axis) => snap(place, axis));
  describeControls();
  live = connectLive(network, $("live-body"));
}
let live;

// The held-out cell that shows most: the fewest seeds are right there, or the error is largest.
function tellingCell() {
  const name = Object.keys(network.scores)[0], { hit } = network.scores[name];
  const held = network.everyCell.filter((cell) => network.held_out.values[cell]);
  const cells = held.length ? held : network.everyCell;
  const wrong = (cell) => mean(network.seeds.map((_, seed) => network.score(name, state.step, seed)[cell])) * (hit ? -1 : 1);
  const centre = network.sizes.map((_, axis) => mean(cells.map((cell) => network.place(cell)[axis])));
  const far = (cell) => Math.hypot(...network.place(cell).map((place, axis) => place - centre[axis]));
  return cells.reduce((best, cell) => {
    const gain = wrong(cell) - wrong(best);
    return gain > 1e-12 || (Math.abs(gain) <= 1e-12 && far(cell) < far(best)) ? cell : best;
  });
}

// --- the state and its hash ------------------------------------------------------------------

function hash() {
  const fields = {
    network: network.name, at: state.at.join(","), step: network.steps[state.step],
    seed: state.seed < 0 ? "all" : network.seeds[state.seed], score: state.score,
  };
  if (state.layer) fields.layer = state.layer;
  if (state.bright) fields.bright = 1;
  if (state.box) fields.region = state.box.join(",");
  if (network.axes.length > 2) fields.axes = state.axes.join(",");
  return new URLSearchParams(fields).toString();
}

async function openFromHash() {
  const fields = new URLSearchParams(location.hash.slice(1)), wanted = {};
  const numbers = (name, count) => {
    const found = (fields.get(name) ?? "").split(",").map(Number);
    return fields.has(name) && found.length === count && found.every(Number.isFinite) ? found : null;
  };
  const index = Math.max(payload.networks.findIndex(({ name }) => name === fields.get("network")), 0);
  const { axes, steps, seeds, scores, layers } = payload.networks[index];
  const put = (name, value, isKnown) => { if (isKnown) wanted[name] = value; };
  const at = numbers("at", axes.length), chosen = numbers("axes", 2);
  put("at", at, at);
  put("axes", chosen, chosen && axes.length > 2 && chosen[0] !== chosen[1] && chosen.every((axis) => axes[axis]));
  put("step", steps.indexOf(Number(fields.get("step"))), steps.includes(Number(fields.get("step"))));
  put("seed", seeds.indexOf(Number(fields.get("seed"))), fields.has("seed"));
  put("score", fields.get("score"), Object.hasOwn(scores, fields.get("score") ?? ""));
  put("layer", fields.get("layer"), layers.some(({ name }) => name === fields.get("layer")));
  put("bright", true, fields.has("bright"));
  put("box", numbers("region", 4), numbers("region", 4));
  await choose(index, wanted);
  if (document.body.dataset.ready) drawAll();
}

// A place on an axis that can be shown: whole, or half-way where the network was asked there.
export function snap(place, axis) {
  const halves = network.hasHalfSteps(state.step) && network.axes[axis].real;
  const found = halves ? Math.round(2 * place) / 2 : Math.round(place);
  return Math.min(Math.max(found, 0), network.sizes[axis] - 1);
}

// --- drawing ---------------------------------------------------------------------------------

let due = 0, changedAt = 0;

// Changes the state and draws what depends on it: 'move' the cursor alone, or all.
export function change(fields, what = "all") {
  changedAt = performance.now();
  Object.assign(state, fields);
  state.at = state.at.map((place, axis) => snap(place, axis));
  if (what === "all") drawAll();
  else if (!due) due = requestAnimationFrame(drawMove);
}

export function drawAll() {
  drawTheMap();
  describeControls();
  drawStrip();
  drawLayer();
  drawCourse();
  drawVerdicts();
  drawMove();
}

function drawMove() {
  due = 0;
  const start = performance.now();
  drawCursor();
  drawGrid();
  drawSentence();
  drawRegion();
  drawRules();
  drawPython();
  $("map").dataset.moveMs = performance.now() - start;
  history.replaceState(null, "", `#${hash()}`);
  live.moved();
}

// The indices of the cells on the map, [row][column], at the cursor's values of the other axes.
export function slice() {
  const [across, up] = state.axes, at = state.at.map(Math.round);
  const rows = up === undefined ? 1 : network.sizes[up];
  return Array.from({ length: rows }, (_, j) => Array.from({ length: network.sizes[across] }, (_, i) => {
    at[across] = i;
    if (up !== undefined) at[up] = j;
    return network.cell(at);
  }));
}

export const one = () => Math.max(state.seed, 0);
export const chosenSeeds = () => (state.seed < 0 ? network.seeds.map((_, k) => k) : [state.seed]);

// 0 for right to 1 for wrong at a cell: a share of hits, or the place of an error between the least
// and the largest, on a logarithmic axis.
function wrongness() {
  const { hit } = network.scores[state.score], seeds = chosenSeeds();
  const values = seeds.map((seed) => network.score(state.score, state.step, seed));
  const at = (cell) => mean(values.map((of) => of[cell]));
  if (hit) return { share: (cell) => 1 - at(cell), low: "right", high: "wrong" };
  const every = network.everyCell.map(at).filter((value) => value > 0);
  const high = Math.max(...every), low = Math.max(Math.min(...every), high / 1e4);
  const share = (cell) => Math.log(Math.max(at(cell), low) / low) / (Math.log(high / low) || 1);
  return { share, low: `${short(low)}`, high: `${short(high)} (${state.score})` };
}

function drawTheMap() {
  const { share, low, high } = wrongness(), cells = slice();
  const canvas = $("map").querySelector("canvas");
  drawMap(canvas, cells, share, makeScale(["right", "between", "wrong"]), { room: 292, outline: network.held_out.values });
  $("map").style.width = `${canvas.width}px`;
  $("legend-low").textContent = low;
  $("legend-high").textContent = high;
}

// Puts every map's ring where the cursor is.
export function drawCursor() {
  const [across, up] = state.axes;
  const left = 100 * (state.at[across] + 0.5) / network.sizes[across];
  const bottom = up === undefined ? 50 : 100 * (state.at[up] + 0.5) / network.sizes[up];
  for (const ring of document.querySelectorAll(".map .cursor")) {
    ring.style.left = `${left}%`;
    ring.style.top = `${100 - bottom}%`;
  }
}

export const valueName = (axis, value) => `${network.factors[axis]} = ${network.axes[axis]?.labels?.[value] ?? short(value, 4)}`;

export function placeName(at = state.at) {
  const names = network.values(at).map((value, k) => valueName(k, value));
  const shown = names.length > 6 ? names.filter((_, k) => network.values(at)[k] !== 0) : names;
  return shown.join(", ");
}

function figure(name, values, options = {}) {
  const canvas = make("canvas"), found = make("figure", { className: "output" }, canvas, make("figcaption", { textContent: name }));
  drawOutput(canvas, values, network, options);
  return found;
}

function drawGrid() {
  const grid = $("grid"), seeds = network.seeds;
  const truths = seeds.map((_, seed) => network.truth(seed, state.at));
  const drawn = seeds.map((_, seed) => network.output(state.step, seed, state.at));
  if (grid.dataset.for !== network.name) {
    grid.dataset.for = network.name;
    grid.style.gridTemplateColumns = `repeat(${Math.min(seeds.length + 1, 5)}, minmax(0, 1fr))`;
    grid.replaceChildren(outputCell("asked"), ...seeds.map((seed, k) => {
      const cell = outputCell(`seed ${seed}`, true);
      cell.firstChild.addEventListener("click", () => change({ seed: state.seed === k ? -1 : k }));
      return cell;
    }));
  }
  const [asked, ...answers] = grid.children;
  drawOutput(asked.querySelector(".first"), truths[one()], network);
  answers.forEach((cell, k) => {
    const difference = drawn[k].map((value, d) => value - truths[k][d]);
    drawOutput(cell.querySelector(".first"), drawn[k], network, { beside: truths[k], limits: state.bright ? brightened(drawn[k]) : network });
    drawOutput(cell.querySelector(".second"), difference, network, { signed: true, limits: spread() });
    cell.classList.toggle("chosen", state.seed === k);
  });
  for (const ring of grid.querySelectorAll(".place")) {
    ring.hidden = !network.positions || network.kind !== "image";
    ring.style.left = `${100 * (state.at[0] + 0.5) / network.shape[1]}%`;
    ring.style.top = `${100 - 100 * (state.at[1] + 0.5) / network.shape[0]}%`;
  }
}

// Limits that show a faint picture as well as a full one.
const brightened = (values) => network.kind !== "image" ? network : ({ low: network.low, high: Math.max(network.low + 0.02 * (network.high - network.low), values.reduce((a, b) => Math.max(a, b))) });
const spread = () => ({ low: network.low - network.high, high: network.high - network.low });

function outputCell(name, answer = false) {
  const canvas = () => make("span", { className: "picture" }, make("canvas", { className: "first" }), make("i", { className: "place" }));
  const cell = make("figure", { className: "output" });
  if (!answer) {
    cell.append(canvas(), make("figcaption", { innerHTML: "<b>asked</b>" }));
    return cell;
  }
  const button = make("button", { title: `Look at ${name} alone`, ariaLabel: `Look at ${name} alone` }, canvas());
  cell.append(button, make("figcaption", { textContent: `${name} draws` }), make("canvas", { className: "second" }),
    make("figcaption", { textContent: "difference" }));
  return cell;
}

const verb = () => (network.kind === "curve" ? "answer" : "draw");

function drawSentence() {
  const { hit } = network.scores[state.score], cell = network.cell(state.at), seeds = network.seeds.length;
  const values = network.seeds.map((_, k) => network.score(state.score, state.step, k)[cell]);
  const where = network.isHeldOut(state.at) ? "a combination never shown in training" : "a combination shown in training";
  const here = hit ? `${values.filter((value) => value === 1).length} of ${seeds} seeds ${verb()} it right`
    : `the mean ${state.score} of ${seeds} seeds is ${short(mean(values))}`;
  const between = Number.isInteger(state.at.reduce((a, b) => a + b + (b % 1 ? 0.25 : 0), 0)) ? "" : " (at the nearest cell)";
  const parts = [true, false].map((hidden) => {
    const cells = network.everyCell.filter((index) => (network.held_out.values[index] === 1) === hidden);
    return cells.length ? interval(network.regionMeans(state.score, state.step, cells), network.t) : null;
  });
  const over = (found) => withInterval(found, hit, payload.level, seeds);
  const what = hit ? `${verb()}n right`.replace("answern", "answered") : `the mean ${state.score}`;
  const all = !parts[0] ? "" : hit ? ` Of all combinations never shown, ${over(parts[0])} are ${what}; of those shown, ${worded(parts[1].mean, hit)}.`
    : ` Over all combinations never shown, ${what} is ${over(parts[0])}; over those shown, ${worded(parts[1].mean, hit)}.`;
  const when = state.step === network.steps.length - 1 ? "" : `After ${network.steps[state.step]} training steps: `;
  $("sentence").innerHTML = "";
  $("sentence").append(make("b", { textContent: `${when}${when ? "asked" : "Asked"} for ${placeName()}, ${where}, ${here}${between}.` }), all);
}

// The cells of the region on the map.
function regionCells() {
  const [first, last, low, high] = state.box;
  return slice().slice(low ?? 0, (high ?? 0) + 1).flatMap((line) => line.slice(first, last + 1));
}

function drawRegion() {
  $("region-box").hidden = $("clear").hidden = !state.box;
  if (!state.box) return $("region").replaceChildren();
  const cells = regionCells(), { hit } = network.scores[state.score];
  const found = interval(network.regionMeans(state.score, state.step, cells), network.t);
  const held = cells.filter((cell) => network.held_out.values[cell]).length;
  const [first, last, low, high] = state.box, [across, up] = state.axes.map((axis) => network.sizes[axis]);
  Object.assign($("region-box").style, {
    left: `${100 * first / across}%`, width: `${100 * (last - first + 1) / across}%`,
    bottom: `${100 * low / (up ?? 1)}%`, height: `${100 * (high - low + 1) / (up ?? 1)}%`,
  });
  Object.assign($("region").dataset, found);
  $("region").textContent = `Region of ${cells.length} combinations, ${held} never shown. Mean of ${state.score}: `
    + `${withInterval(found, hit, payload.level, network.seeds.length)}.`;
}

// --- rules, course of training, Python -------------------------------------------------------

// Pictures that need no combining, each with the parts that it is a sum of.
function rules(cell, seed) {
  const seen = network.everyCell.filter((other) => !network.held_out.values[other]);
  const at = network.place(cell), truth = network.truth(seed, at);
  const drawnAt = (other) => network.output(state.step, seed, network.place(other));
  const truthAt = (other) => network.truth(seed, network.place(other));
  const along = (cells, picture) => at.map((_, axis) => network.sumAlong(axis, cell, cells, picture));
  const plus = () => {
    const sums = along(network.everyCell, truthAt);
    return sums[0].map((_, d) => sums.reduce((sum, part) => sum + part[d], 0));
  };
  const several = network.axes.length > 1 && !network.points;
  return [
    { name: "what is asked", parts: [truth], about: "the true output" },
    several && { name: "superposition", parts: along(seen, drawnAt), about: "its own outputs for seen combinations that share a factor, added" },
    several && { name: "plus", parts: [plus()], about: "true outputs that share a factor, added" },
    { name: "nearest seen", parts: [network.predictor("nearest", seed, cell)], about: "the true output of the nearest seen combination" },
    { name: "local interpolator", parts: [network.predictor("interpolator", seed, cell)], about: "a smooth blend of seen outputs with similar codes" },
  ].filter((rule) => rule && rule.parts[0]);
}

let rulesDue = 0;

function drawRules() {
  document.querySelectorAll(".one-seed").forEach((each) => { each.textContent = `seed ${network.seeds[one()]}`; });
  clearTimeout(rulesDue);
  rulesDue = setTimeout(() => {
    const cell = network.cell(state.at), seed = one(), drawn = network.output(state.step, seed, network.place(cell));
    if (!network.held_out.values[cell]) {
      $("rule-cards").textContent = "This combination was shown in training: choose one inside the outline.";
      return;
    }
    const card = (name, values, text, about) => {
      const options = { limits: brightened(values) };
      const found = make("div", { className: "card", title: about }, make("h3", { textContent: name }), figure("", values, options), make("p", { textContent: text }), make("p", { textContent: about }));
      found.querySelector("figcaption").remove();
      found.dataset.rule = name;
      return found;
    };
    $("rule-cards").replaceChildren(card(`seed ${network.seeds[seed]} draws`, drawn, "", placeName(network.place(cell))),
      ...rules(cell, seed).map(({ name, parts, about }) => {
        const { fit, r2 } = explain(drawn, parts), found = card(name, name === "superposition" || name === "plus" ? fit : parts[0], `r² = ${short(Math.max(r2, 0))}`, about);
        found.dataset.r2 = r2;
        return found;
      }));
  }, 40);
}

// The score along training, on shown and on never-shown combinations: mean and interval.
function drawCourse() {
  const canvas = $("course"), context = canvas.getContext("2d"), { width, height } = canvas;
  const { hit } = network.scores[state.score], steps = network.steps;
  const bands = [0, 1].map((hidden) => {
    const cells = network.everyCell.filter((cell) => network.held_out.values[cell] === hidden);
    return cells.length ? steps.map((_, step) => interval(network.regionMeans(state.score, step, cells), network.t)) : [];
  });
  const every = bands.flat().map((one) => one.mean);
  const scale = hit ? (value) => value : (value) => Math.log(Math.max(value, 1e-12));
  const low = hit ? 0 : scale(Math.min(...every)), high = hit ? 1 : scale(Math.max(...every));
  const x = (k) => 16 + (width - 32) * (steps.length > 1 ? k / (steps.length - 1) : 0.5);
  const y = (value) => height - 20 - (height - 34) * Math.min(Math.max((scale(value) - low) / (high - low || 1), 0), 1);
  context.clearRect(0, 0, width, height);
  context.fillStyle = color("faint");
  context.fillRect(x(state.step) - 0.75, 0, 1.5, height - 16);
  bands.forEach((band, hidden) => {
    if (!band.length) return;
    context.fillStyle = context.strokeStyle = color(hidden ? "wrong" : "accent");
    context.lineWidth = 2.5;
    context.globalAlpha = 0.2;
    context.beginPath();
    band.forEach((one, k) => context.lineTo(x(k), y(one.low ?? one.mean)));
    band.map((one, k) => [one, k]).reverse().forEach(([one, k]) => context.lineTo(x(k), y(one.high ?? one.mean)));
    context.fill();
    context.globalAlpha = 1;
    context.beginPath();
    band.forEach((one, k) => context.lineTo(x(k), y(one.mean)));
    context.stroke();
    band.forEach((one, k) => context.fillRect(x(k) - 3, y(one.mean) - 3, 6, 6));
  });
  context.fillStyle = color("muted");
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  steps.forEach((step, k) => context.fillText(step, x(k), height - 4));
  $("course-name").textContent = hit ? "share right, by training step" : `mean ${state.score} (log), by training step`;
  canvas.ariaLabel = $("course-name").textContent;
}

function drawPython() {
  const last = state.step === network.steps.length - 1, step = network.steps[state.step];
  const point = network.values(state.at).map((value) => Number(value.toPrecision(7))), lines = [
    "import compgen_jax as cg", "", `run = cg.load(${JSON.stringify(network.path)})`,
    `point = [${point.join(", ")}]  # ${network.factors.join(", ")}`,
    "run.draw(*point)  # asked, drawn by every seed, and their difference",
    last ? "outputs = run.predict([point])  # one for every seed"
      : `outputs = run.finished.at(${step}).predict([point])  # after ${step} training steps`,
  ];
  if (state.seed >= 0) lines.push(`output = outputs[${network.seeds[state.seed] === state.seed ? state.seed : `run.config.training.seeds.index(${network.seeds[state.seed]})`}]  # of seed ${network.seeds[state.seed]}`);
  if (state.box && !network.points) {
    const limits = state.axes.map((axis, k) => {
      const { values } = network.axes[axis], name = JSON.stringify(network.factors[axis]);
      return `cells[${name}].between(${values[state.box[2 * k]]}, ${values[state.box[2 * k + 1]]})`;
    });
    lines.push("cells = run.cells", `region = cells[${limits.join(" & ")}]`, `region.groupby("seed")[${JSON.stringify(state.score)}].mean()`);
  }
  $("python").textContent = lines.join("\n");
}
