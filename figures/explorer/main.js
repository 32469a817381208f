// The explorer: one state, in the URL's hash, and what is shown of it.

import { connectControls, describeControls } from "controls";
import { openNetwork } from "data";
import { drawLayer, drawStrip } from "layers";
import { connectLive } from "live";
import { mean } from "numbers";
import { drawCourse, drawPython, drawRules } from "rules";
import { drawVerdicts } from "verdicts";
import { drawGuess } from "guess";
import { drawCursor, drawDrawings, drawRegion, drawTheMap } from "views";

export const $ = (id) => document.getElementById(id);
export const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
};

// What the page shows. `at` is a position (see data.js); `seed` -1 means all; `box` is a region of
// the map: first and last cell across, first and last cell up. `beside` is the network to compare
// with, -1 for none. `guess` is null unless the reader guesses; it then has the guessed `place`.
export const state = {
  network: 0, at: [], step: 0, seed: -1, layer: null, score: "", axes: [0, 1], box: null, bright: false,
  beside: -1, guess: null,
};
export let payload, network, verdicts;
let opened = [], other = null;

export async function start(texts) {
  [payload, verdicts] = texts.map((text) => JSON.parse(text));
  await openFromHash();
  connectControls();
  window.addEventListener("hashchange", () => location.hash.slice(1) !== hash() && openFromHash());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  window.addEventListener("resize", drawCourse);
  $("page").hidden = false;
  drawAll();
  document.body.dataset.ready = "yes";
}

export async function choose(index, wanted = {}) {
  opened[index] ??= openNetwork(payload.networks[index]);
  network = await opened[index];
  const names = Object.keys(network.scores);
  Object.assign(state, {
    network: index, axes: network.axes.length > 1 ? network.map : [0], step: network.steps.length - 1,
    score: names.includes(state.score) ? state.score : names[0], box: null, layer: null, seed: -1,
  });
  state.at = network.place(state.guess ? randomCell() : typicalCell());
  Object.assign(state, wanted);
  state.at = state.at.map((place, axis) => snap(place, axis));
  state.guess &&= canGuess() ? {} : null;
  await chooseBeside(state.beside);
  describeControls();
  live = connectLive(network, $("live-body"));
}
let live;

// Another network beside this one, if it can be asked for the same.
export async function chooseBeside(index) {
  state.beside = isComparable(index) ? index : -1;
  if (state.beside >= 0) opened[index] ??= openNetwork(payload.networks[index]);
  other = await opened[state.beside] ?? null;
}

export function isComparable(index) {
  const names = ({ axes }) => JSON.stringify(axes.map(({ name }) => name));
  const raw = payload.networks[index];
  return index !== state.network && raw && !raw.points && !network.points && names(raw) === names(network);
}

// What is shown of the network and of that beside it, at the same place and share of training.
export function views() {
  const here = { network, at: state.at, step: state.step };
  if (!other) return [here];
  const step = other.stepAt(network.steps[state.step] / network.steps.at(-1));
  return [here, { network: other, at: other.nearestTo(network, state.at, step), step }];
}

export const scoreOf = ({ scores }) => (Object.hasOwn(scores, state.score) ? state.score : Object.keys(scores)[0]);
export const canGuess = () => network.kind !== "curve" && network.heldOutOf.size > 0;

export function randomCell() {
  const cells = [...network.heldOutOf.keys()];
  return cells[Math.floor(Math.random() * cells.length)] ?? 0;
}

// The held-out cell whose mean over seeds is nearest to the region's, then nearest to its centre.
function typicalCell() {
  const name = Object.keys(network.scores)[0], held = network.everyCell.filter((cell) => network.held_out.values[cell]);
  const cells = held.length ? held : network.everyCell;
  const at = network.everyCell.map((cell) => mean(network.seeds.map((_, seed) => network.score(name, state.step, seed)[cell])));
  const middle = mean(cells.map((cell) => at[cell])), off = (cell) => Math.abs(at[cell] - middle);
  const centre = network.sizes.map((_, axis) => mean(cells.map((cell) => network.place(cell)[axis])));
  const far = (cell) => Math.hypot(...network.place(cell).map((place, axis) => place - centre[axis]));
  return cells.reduce((best, cell) => {
    const gain = off(best) - off(cell);
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
  if (state.beside >= 0) fields.beside = payload.networks[state.beside].name;
  if (state.guess) fields.guess = 1;
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
  const { axes, map, steps, seeds, scores, layers } = payload.networks[index];
  const put = (name, value, isKnown) => { if (isKnown) wanted[name] = value; };
  const at = numbers("at", axes.length), chosen = numbers("axes", 2);
  put("at", at, at);
  put("axes", chosen, chosen && axes.length > 2 && chosen[0] !== chosen[1] && chosen.every((axis) => axes[axis]));
  put("step", steps.indexOf(Number(fields.get("step"))), steps.includes(Number(fields.get("step"))));
  put("seed", seeds.indexOf(Number(fields.get("seed"))), fields.has("seed"));
  put("score", fields.get("score"), Object.hasOwn(scores, fields.get("score") ?? ""));
  put("layer", fields.get("layer"), layers.some(({ name }) => name === fields.get("layer")));
  put("bright", true, fields.has("bright"));
  wanted.beside = payload.networks.findIndex(({ name }) => name === fields.get("beside"));
  state.guess = fields.has("guess") ? {} : null;
  const box = numbers("region", 4), sizes = (wanted.axes ?? map).map((axis) => axes[axis]?.values.length ?? 1);
  const fits = (first, last, size) => [first, last].every(Number.isInteger) && 0 <= first && first <= last && last < size;
  put("box", box, box && sizes.every((size, k) => fits(box[2 * k], box[2 * k + 1], size)));
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

let due = 0;

// Changes the state and draws what depends on it: 'move' the cursor alone, or all.
export function change(fields, what = "all") {
  if (fields.at) state.guess &&= {};  // another place, another guess
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
  drawDrawings();
  drawGuess();
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
