// The strip of layers, and the units and the metric of one.

import { row } from "data";
import { mean, short } from "numbers";
import { drawEllipses, drawMap, makeScale } from "pictures";
import { $, change, make, network, one, slice, state } from "main";
import { drawCursor } from "views";

function smallMap(values, names) {
  const canvas = make("canvas"), cells = slice(), every = values.filter(Number.isFinite);
  const low = every.reduce((a, b) => Math.min(a, b), Infinity), high = every.reduce((a, b) => Math.max(a, b), -Infinity);
  const share = (cell) => (values[cell] - low) / (high - low || 1);
  drawMap(canvas, cells, share, makeScale(names), { room: 112, outline: network.held_out.values });
  canvas.style.width = `${canvas.width}px`;
  return make("div", { className: "map small" }, canvas, make("div", { className: "cursor" }));
}

export const layerTitle = (index) => (index === 0 ? "code" : index === network.layers.length - 1 ? "output" : `layer ${index}`);

export function drawStrip() {
  $("strip").replaceChildren(...network.layers.map((layer, index) => {
    const card = make("button", { className: "card", title: layer.name }, make("h3", { textContent: layerTitle(index) }));
    card.dataset.layer = layer.name;
    card.classList.toggle("chosen", layer.name === state.layer);
    card.append(layer.volume ? smallMap(row(layer.volume, one()), ["coarse", "finer"])
      : smallMap(row(layer.units, one()), ["paper", "ink"]));
    for (const [name, values] of Object.entries(layer.numbers)) {
      const known = (state.seed < 0 ? values : [values[state.seed]]).filter((value) => value !== null);
      card.append(make("p", { textContent: `${name}: ${known.length ? short(Math.round(100 * mean(known)) / 100) : "–"}` }));
    }
    card.addEventListener("click", () => change({ layer: layer.name === state.layer ? null : layer.name }));
    return card;
  }));
}

export function drawLayer() {
  const index = network.layers.findIndex(({ name }) => name === state.layer), layer = network.layers[index];
  if (!layer) return $("layer").replaceChildren();
  const count = layer.units.shape.at(-2);
  const units = Array.from({ length: count }, (_, unit) => make("div", { className: "card" },
    smallMap(row(layer.units, one(), unit), ["paper", "ink"])));
  const left = make("div", {}, make("h3", { textContent: `${count} units of ${layerTitle(index)}: dark where active` }),
    make("div", { className: "cards" }, ...units));
  $("layer").replaceChildren(make("div", { className: "detail" }, left, metric(layer, index)));
  drawCursor();
}

// Ellipses over the map's axes; factors that are labels have no derivative.
function metric(layer, index) {
  const real = network.axes.map((axis, k) => (axis.real ? k : -1)).filter((k) => k >= 0);
  const [i, j] = state.axes.map((axis) => real.indexOf(axis));
  if (!layer.lengths || !(i >= 0) || !(j >= 0)) {
    return make("p", { className: "hint", textContent: "No metric: it needs two factors with values in between, and a code with a derivative." });
  }
  const lengths = [i, j].map((k) => row(layer.lengths, one(), k));
  const pairs = real.flatMap((_, a) => real.map((_, b) => [a, b]).filter(([a, b]) => a < b));
  const cosines = row(layer.cosines, one(), pairs.findIndex(([a, b]) => a === Math.min(i, j) && b === Math.max(i, j)));
  const canvas = make("canvas"), cells = slice();
  drawEllipses(canvas, cells, (cell) => {
    const [x, y] = [lengths[0][cell], lengths[1][cell]];
    return [x * x, x * y * cosines[cell], y * y];
  }, Math.max(5, Math.floor(290 / Math.max(cells.length, cells[0].length))));
  return make("div", {}, make("h3", { textContent: `Metric of ${layerTitle(index)}` }),
    make("p", { className: "hint", textContent: "Each ellipse is long in the direction in which the layer changes fastest." }),
    make("div", { className: "map small" }, canvas, make("div", { className: "cursor" })));
}
