// The map, the outputs beside what is asked, and the sentences.

import { column } from "data";
import { guess, isPending } from "guess";
import { interval, mean, short, withInterval, worded } from "numbers";
import { drawMap, drawOutput, makeScale } from "pictures";
import { $, change, chosenSeeds, make, network, one, payload, scoreOf, slice, state, views } from "main";

// 0 for right to 1 for wrong at a cell: a share of hits, or the place of an error between the least
// and the largest, on a logarithmic axis.
function wrongness() {
  const { hit } = network.scores[state.score], seeds = chosenSeeds();
  const values = seeds.map((seed) => network.score(state.score, state.step, seed));
  const at = (cell) => mean(values.map((of) => of[cell]));
  if (hit) return { share: (cell) => 1 - at(cell), low: "right", high: "wrong" };
  const every = network.everyCell.map(at).filter((value) => value > 0);
  const low = Math.min(...every), high = Math.max(...every);
  const share = (cell) => Math.log(Math.max(at(cell), low) / low) / (Math.log(high / low) || 1);
  return { share, low: `${short(low)}`, high: `${short(high)} (${state.score})` };
}

export function drawTheMap() {
  const { share, low, high } = wrongness(), cells = slice();
  const canvas = $("map").querySelector("canvas");
  drawMap(canvas, cells, share, makeScale(["right", "wrong"]), { room: 292, outline: network.held_out.values });
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

function placeName({ network, at }) {
  const values = network.values(at);
  const label = (k, value) => (network.points ? network.labels[k][value] : network.axes[k].labels[at[k]]);
  const names = values.map((value, k) => `${network.factors[k]} = ${label(k, value) ?? short(value, 4)}`);
  return (names.length > 6 ? names.filter((_, k) => values[k] !== 0) : names).join(", ");
}

export const placeHere = () => placeName({ network, at: state.at });

// --- drawings ----------------------------------------------------------------------------------

// The network's, with its sentence, and below those of the network beside it.
export function drawDrawings() {
  const shown = views();
  $("drawings").classList.toggle("compared", shown.length > 1);
  $("part-beside").hidden = $("sentence-beside").hidden = $("name").hidden = shown.length < 2;
  ["", "-beside"].slice(0, shown.length).forEach((suffix, k) => {
    drawGrid($(`grid${suffix}`), shown[k], k === 0);
    drawSentence($(`sentence${suffix}`), shown[k], k === 0 ? "" : `${shown[k].network.name}: `);
    $(`name${suffix}`).textContent = shown[k].network.name;
  });
}

function drawGrid(grid, { network, at, step }, isFirst) {
  const { given, seeds } = network, picked = Math.min(one(), seeds.length - 1);
  const truths = seeds.map((_, seed) => network.truth(seed, at));
  if (grid.dataset.for !== network.name) build(grid, network, isFirst);
  const [asked, ...answers] = grid.children;
  drawOutput(asked.querySelector(".first"), truths[picked], network);
  asked.querySelector(".difference").hidden = !given;
  if (given) drawOutput(asked.querySelector(".second"), column(given.values, 0, network.cell(at)), { ...given.values, ...given });
  answers.forEach((cell, seed) => {
    const empty = truths[seed].map(() => network.low);
    const drawn = isPending() ? empty : network.output(step, seed, at);
    const difference = isPending() ? empty.map(() => 0) : drawn.map((value, d) => value - truths[seed][d]);
    const limits = state.bright || state.guess ? brightened(drawn, network) : network;
    drawOutput(cell.querySelector(".first"), drawn, network, { beside: truths[seed], limits });
    drawOutput(cell.querySelector(".second"), difference, network, { signed: true, limits: spread(network) });
    cell.classList.toggle("chosen", isFirst && state.seed === seed);
  });
  for (const ring of grid.querySelectorAll(".place")) {
    ring.hidden = !network.positions || network.kind !== "image";
    ring.style.left = `${100 * (at[0] + 0.5) / network.shape[1]}%`;
    ring.style.top = `${100 - 100 * (at[1] + 0.5) / network.shape[0]}%`;
  }
  for (const mark of grid.querySelectorAll(".guess")) {
    const [left, top] = state.guess?.place ?? [];
    mark.hidden = left === undefined;
    mark.style.left = `${100 * left}%`;
    mark.style.top = `${100 * top}%`;
  }
}

function build(grid, network, isFirst) {
  grid.dataset.for = network.name;
  grid.style.gridTemplateColumns = `repeat(${Math.min(network.seeds.length + 1, 5)}, minmax(0, 1fr))`;
  const picture = (...marks) => make("span", { className: "picture" }, make("canvas", { className: "first" }), make("i", { className: "place" }), ...marks);
  const below = (text) => make("div", { className: "difference" }, make("canvas", { className: "second" }), make("figcaption", { textContent: text }));
  const asked = make("figure", { className: "output asked" }, picture(), make("figcaption", { innerHTML: "<b>asked</b>" }), below("read off this picture"));
  grid.replaceChildren(asked, ...network.seeds.map((seed, k) => {
    const title = `Look at seed ${seed} alone`;
    const button = make("button", isFirst ? { title, ariaLabel: title } : { ariaLabel: `seed ${seed}` }, picture(make("i", { className: "guess" })));
    button.addEventListener("click", (event) => {
      if (isPending()) guess(event, button);
      else if (isFirst) change({ seed: state.seed === k ? -1 : k });
    });
    return make("figure", { className: "output" }, button, make("figcaption", { textContent: `seed ${seed}` }), below("difference"));
  }));
}

// Limits that show a faint picture as well as a full one.
export function brightened(values, { kind, low, high }) {
  return kind === "image" ? { low, high: Math.max(low + 0.02 * (high - low), Math.max(...values)) } : { low, high };
}
const spread = ({ low, high }) => ({ low: low - high, high: high - low });

// --- sentences ---------------------------------------------------------------------------------

const verb = ({ kind }) => (kind === "curve" ? "answer" : "draw");
const HELD_OUT = "a combination never shown in training", SHOWN = "a combination outside the held-out region";
const AT_CELL = " (at the nearest cell)";

// A hidden copy of the longest sentence that another place could have keeps its room, so that
// nothing below moves.
function drawSentence(paragraph, view, start) {
  const { network, at, step } = view, score = scoreOf(network), { hit } = network.scores[score], count = network.seeds.length;
  const values = network.seeds.map((_, seed) => network.score(score, step, seed)[network.cell(at)]);
  const right = (hits) => `${hits} of ${count} seeds ${verb(network)} it right`;
  const error = (value) => `the mean ${score} of ${count} seed${count > 1 ? "s" : ""} is ${value}`;
  const scored = hit ? right(values.filter((value) => value === 1).length) : error(short(mean(values)));
  const last = step === network.steps.length - 1;
  const first = `${start}${last ? "" : `After ${network.steps[step]} training steps: `}`;
  const words = (place, where, what, between) => `${first}${first ? "asked" : "Asked"} for ${place}, ${where}${isPending() ? "" : `, ${what}`}${between}.`;
  const between = at.some((place) => place % 1) ? AT_CELL : "";
  const text = words(placeName(view), network.isHeldOut(at) ? HELD_OUT : SHOWN, scored, between);
  const longest = words(longestPlace(network), SHOWN, hit ? right(count) : error("0.00888"), network.hasHalfSteps(step) ? AT_CELL : "");
  const region = regionWords(network, step, score);
  paragraph.replaceChildren(make("span", {}, make("b", { textContent: text }), region),
    make("span", { className: "reserve", ariaHidden: true }, make("b", { textContent: longest }), region));
}

const longestPlaces = new Map();  // by network

function longestPlace(network) {
  if (!longestPlaces.has(network)) {
    const names = network.everyCell.map((cell) => placeName({ network, at: network.place(cell) }));
    const longest = names.reduce((best, name) => (name.length > best.length ? name : best));
    longestPlaces.set(network, longest + (network.drawn_fine ? "0.5".repeat(network.axes.length) : ""));
  }
  return longestPlaces.get(network);
}

function regionWords(network, step, score) {
  const { hit } = network.scores[score], count = network.seeds.length;
  const [shown, held] = [0, 1].map((hidden) => {
    const cells = network.everyCell.filter((cell) => network.held_out.values[cell] === hidden);
    return cells.length ? interval(network.regionMeans(score, step, cells), network.t) : null;
  });
  if (!held || !shown) return "";
  const over = withInterval(held, hit, payload.level, count), outside = worded(shown.mean, hit);
  return hit ? ` In the held-out region, ${over} are ${verb(network) === "draw" ? "drawn" : "answered"} right; outside it, ${outside}.`
    : ` In the held-out region, the mean ${score} is ${over}; outside it, ${outside}.`;
}

// --- a selected region -------------------------------------------------------------------------

// The cells of the region on the map.
function regionCells() {
  const [first, last, low, high] = state.box;
  return slice().slice(low ?? 0, (high ?? 0) + 1).flatMap((line) => line.slice(first, last + 1));
}

export function drawRegion() {
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
  $("region").textContent = `Region of ${cells.length} combinations, ${held} of the held-out region. Mean of ${state.score}: `
    + `${withInterval(found, hit, payload.level, network.seeds.length)}.`;
}
