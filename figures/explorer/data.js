// The payload of payload.py, decoded: what a network draws, what is asked, and every score.

import { decodeArrays } from "arrays";

export async function openNetwork(raw) {
  return new Network(await decodeArrays(raw));
}

// A position is a list of places, one for each axis: 3 is the fourth value, 3.5 half-way to the
// next. A cell is a position of whole numbers, counted with the first axis varying fastest.
class Network {
  constructor(fields) {
    Object.assign(this, fields);
    this.sizes = this.axes.map((axis) => axis.values.length);
    this.count = this.sizes.reduce((a, b) => a * b, 1);
    this.entries = this.shape.reduce((a, b) => a * b, 1);
    this.everyCell = Array.from({ length: this.count }, (_, cell) => cell);
    this.heldOutOf = new Map();  // cell -> its place among the held-out cells
    this.everyCell.filter((cell) => this.held_out.values[cell])
      .forEach((cell, place) => this.heldOutOf.set(cell, place));
  }

  cell(at) {
    let index = 0;
    for (let axis = at.length - 1; axis >= 0; axis--) index = index * this.sizes[axis] + Math.round(at[axis]);
    return index;
  }

  place(cell) {
    return this.sizes.map((size) => {
      const index = cell % size;
      cell = Math.floor(cell / size);
      return index;
    });
  }

  hasHalfSteps(step) {
    return this.drawn_fine !== null && step === this.steps.length - 1;
  }

  #fineIndex(at) {
    let index = 0;
    for (let axis = at.length - 1; axis >= 0; axis--) {
      index = index * this.axes[axis].fine.length + this.#tick(at, axis);
    }
    return index;
  }

  // The checkpoint nearest to a share of training, in ratios.
  stepAt(share) {
    const far = (step) => Math.abs(Math.log(step / this.steps.at(-1) / share));
    return this.steps.reduce((best, step, k) => (far(step) < far(this.steps[best]) ? k : best), 0);
  }

  // The position nearest to that of another network with axes of the same names.
  nearestTo(other, at, step) {
    const values = other.values(at);
    return this.axes.map(({ fine, real, values: cells }, axis) => {
      const halves = real && this.hasHalfSteps(step), far = (value) => Math.abs(value - values[axis]);
      const best = (halves ? fine : cells).reduce((k, value, index, all) => (far(value) < far(all[k]) ? index : k), 0);
      return halves ? best / 2 : best;
    });
  }

  // Values of the factors, in the factors' order.
  values(at) {
    if (this.points) {
      const width = this.factors.length;
      return Array.from(this.points.values.subarray(this.cell(at) * width, (this.cell(at) + 1) * width));
    }
    return this.axes.map((axis, k) => {
      const low = axis.values[Math.floor(at[k])], high = axis.values[Math.ceil(at[k])];
      return (low + high) / 2;
    });
  }

  isHeldOut(at) {
    const mask = this.held_out_fine ? this.held_out_fine.values[this.#fineIndex(at)]
      : this.held_out.values[this.cell(at)];
    return mask === 1;
  }

  output(step, seed, at) {
    if (this.hasHalfSteps(step)) return column(this.drawn_fine, seed, this.#fineIndex(at));
    return column(this.drawn[step], seed, this.cell(at));
  }

  truth(seed, at) {
    if (this.truths_fine) return column(this.truths_fine, seed, this.#fineIndex(at));
    return column(this.truths, seed, this.cell(at));
  }

  // Of the Q held-out cells: 'nearest' or 'interpolator'; null at a seen one, or without it.
  predictor(name, seed, cell) {
    if (!this[name] || !this.heldOutOf.has(cell)) return null;
    return column(this[name], seed, this.heldOutOf.get(cell));
  }

  // How much of what a seed draws at a held-out cell each rule explains, by the rule's name.
  explained(step, seed, cell) {
    const { rules, r2 } = this.rules, [, seeds, count, cells] = r2.shape;
    const start = ((step * seeds + seed) * count) * cells + this.heldOutOf.get(cell);
    return Object.fromEntries(rules.map((rule, k) => [rule, r2.values[start + k * cells] / r2.levels]));
  }

  // The code at a position, with those factors missing whose number is in `off`.
  code(at, off = new Set()) {
    const { code, factors } = this.live.table, found = code.values.slice();
    factors.forEach(({ entries, rows, absent }, k) => {
      const start = entries.length * this.#tick(at, k);
      entries.forEach((unit, place) => { found[unit] = off.has(k) ? absent.values[place] : rows.values[start + place]; });
    });
    return found;
  }

  // The place on an axis, in half steps where it has them.
  #tick(at, axis) {
    const { fine, real } = this.axes[axis];
    return Math.round(at[axis] * (fine && real ? 2 : 1));
  }

  // (B) of one score, step and seed
  score(name, step, seed) {
    const start = (step * this.seeds.length + seed) * this.count;
    return this.scores[name].values.values.subarray(start, start + this.count);
  }

  // The mean of a score over cells, one number for each seed.
  regionMeans(name, step, cells) {
    return this.seeds.map((_, seed) => {
      const values = this.score(name, step, seed);
      return cells.reduce((sum, cell) => sum + values[cell], 0) / cells.length;
    });
  }

  // The sum of pictures, `picture(cell)`, over the given cells that share the value of one axis.
  sumAlong(axis, cell, cells, picture) {
    const value = this.place(cell)[axis], sum = new Float64Array(this.entries);
    for (const other of cells) {
      if (this.place(other)[axis] !== value) continue;
      picture(other).forEach((entry, k) => { sum[k] += entry; });
    }
    return sum;
  }
}

// values (T or 1, D, B) -> (D) of one seed and position, in the unit of the output
export function column(packed, seed, index) {
  const [seeds, entries, positions] = packed.shape;
  const start = (seeds === 1 ? 0 : seed) * entries, found = new Float32Array(entries);
  const unit = (packed.high - packed.low) / packed.levels;
  for (let k = 0; k < entries; k++) found[k] = packed.low + unit * packed.values[(start + k) * positions + index];
  return found;
}

// values (T, ..., B) -> (B) of one seed and row, in their own unit
export function row(packed, seed, index = 0) {
  const length = packed.shape.at(-1), rows = packed.values.length / length / packed.shape[0];
  const start = (seed * rows + index) * length, unit = (packed.high - packed.low) / packed.levels;
  return Float32Array.from(packed.values.subarray(start, start + length), (q) => packed.low + unit * q);
}
