// The map, the outputs beside what is asked, and the sentence.

import { column } from "data";
import { interval, mean, short, withInterval, worded } from "numbers";
import { drawMap, drawOutput, makeScale } from "pictures";
import { $, change, chosenSeeds, make, network, one, payload, slice, state } from "main";

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

export function drawTheMap() {
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

export function placeName(at = state.at) {
  const label = (k, value) => (network.points ? network.labels[k][value] : network.axes[k].labels[at[k]]);
  const names = network.values(at).map((value, k) => `${network.factors[k]} = ${label(k, value) ?? short(value, 4)}`);
  const shown = names.length > 6 ? names.filter((_, k) => network.values(at)[k] !== 0) : names;
  return shown.join(", ");
}

export function drawGrid() {
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
  const [asked, ...answers] = grid.children, { given } = network;
  drawOutput(asked.querySelector(".first"), truths[one()], network);
  for (const each of asked.querySelectorAll(".second, .second + *")) each.hidden = !given;
  if (given) drawOutput(asked.querySelector(".second"), column(given.values, 0, network.cell(state.at)), given);
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
export const brightened = (values) => network.kind !== "image" ? network : ({ low: network.low, high: Math.max(network.low + 0.02 * (network.high - network.low), values.reduce((a, b) => Math.max(a, b))) });
const spread = () => ({ low: network.low - network.high, high: network.high - network.low });

function outputCell(name, answer = false) {
  const canvas = () => make("span", { className: "picture" }, make("canvas", { className: "first" }), make("i", { className: "place" }));
  const cell = make("figure", { className: "output" });
  if (!answer) {
    cell.append(canvas(), make("figcaption", { innerHTML: "<b>asked</b>" }), make("canvas", { className: "second" }),
      make("figcaption", { textContent: "read off this picture" }));
    return cell;
  }
  const button = make("button", { title: `Look at ${name} alone`, ariaLabel: `Look at ${name} alone` }, canvas());
  cell.append(button, make("figcaption", { textContent: `${name} ${verb()}s` }), make("canvas", { className: "second" }),
    make("figcaption", { textContent: "difference" }));
  return cell;
}

const verb = () => (network.kind === "curve" ? "answer" : "draw");

export function drawSentence() {
  const { hit } = network.scores[state.score], cell = network.cell(state.at), seeds = network.seeds.length;
  const values = network.seeds.map((_, k) => network.score(state.score, state.step, k)[cell]);
  const where = network.isHeldOut(state.at) ? "a combination never shown in training" : "a combination outside the held-out region";
  const here = hit ? `${values.filter((value) => value === 1).length} of ${seeds} seeds ${verb()} it right`
    : `the mean ${state.score} of ${seeds} seeds is ${short(mean(values))}`;
  const between = Number.isInteger(state.at.reduce((a, b) => a + b + (b % 1 ? 0.25 : 0), 0)) ? "" : " (at the nearest cell)";
  const parts = [true, false].map((hidden) => {
    const cells = network.everyCell.filter((index) => (network.held_out.values[index] === 1) === hidden);
    return cells.length ? interval(network.regionMeans(state.score, state.step, cells), network.t) : null;
  });
  const over = (found) => withInterval(found, hit, payload.level, seeds);
  const what = hit ? `${verb()}n right`.replace("answern", "answered") : `the mean ${state.score}`;
  const all = !parts[0] ? "" : hit ? ` In the held-out region, never shown in training, ${over(parts[0])} are ${what}; outside it, ${worded(parts[1].mean, hit)}.`
    : ` In the held-out region, never shown in training, ${what} is ${over(parts[0])}; outside it, ${worded(parts[1].mean, hit)}.`;
  const when = state.step === network.steps.length - 1 ? "" : `After ${network.steps[state.step]} training steps: `;
  $("sentence").innerHTML = "";
  $("sentence").append(make("b", { textContent: `${when}${when ? "asked" : "Asked"} for ${placeName()}, ${where}, ${here}${between}.` }), all);
}

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
