// Trains its seeds in turn, a slice of each, so that all maps fill in together.
//
// It takes {type: "start", run, seeds}, "pause" and "resume", and posts {seed, step, errors,
// rendered, outputs, loss} of every seed after its first slice, then every `EVERY` milliseconds, and
// at the end, with `done`.

import { makeDecoder, generator, shuffled } from "decoders";
import { cellsOf, codeOf, codeSize, imageOf, scoresOf, table } from "bumps";
import { makeTrainer } from "training";

const SLICE = 20, EVERY = 2500;  // steps; ms

// The training of one seed: {advance(steps), report(), isDone()}. `run`: {grid, code, heldOut, points, steps,
// batch, rate, decay, model}; `points` are the training set, shown once an epoch in an order of its own.
export function makeRun(run, seed) {
  const { grid, code, points, batch } = run, length = codeSize(grid, code), size = grid * grid;
  const { step, run: outputsOf } = makeTrainer(makeDecoder(run, length, seed), length, batch);
  const codesOf = (rows) => table(rows, grid, (point) => codeOf(point, grid, code));
  const codes = codesOf(points), targets = table(points, grid, imageOf), cells = codesOf(cellsOf(grid));
  const next = generator(seed + 2 ** 31), inputs = new Float32Array(batch * length), wanted = new Float32Array(batch * size);
  let order = [], place = 0, done = 0, loss = NaN;

  function advance(steps) {
    for (let k = 0; k < steps && done < run.steps; k++, done++) {
      if (place >= order.length) [order, place] = [shuffled(points.length, next), 0];
      const count = Math.min(batch, order.length - place);
      for (let b = 0; b < count; b++, place++) {
        const row = order[place];
        for (let i = 0; i < length; i++) inputs[b * length + i] = codes[row * length + i];
        for (let i = 0; i < size; i++) wanted[b * size + i] = targets[row * size + i];
      }
      loss = step(inputs, wanted, count, run);
    }
  }

  function report() {
    const outputs = new Float32Array(size * size);
    for (let first = 0; first < size; first += batch) {
      const count = Math.min(batch, size - first);
      const drawn = outputsOf(cells.subarray(first * length, (first + count) * length), count);
      outputs.set(drawn.subarray(0, count * size), first * size);
    }
    return { seed, step: done, loss, outputs, done: done >= run.steps, ...scoresOf(outputs, grid, run.heldOut) };
  }
  return { advance, report, isDone: () => done >= run.steps };
}

export function listen(scope) {
  let runs = [], turn = 0, timer = 0, isPaused = false;

  function work() {
    timer = 0;
    if (isPaused || !runs.length) return;
    const entry = runs[turn++ % runs.length];
    entry.run.advance(SLICE);
    if (performance.now() - entry.reported > EVERY || entry.run.isDone()) post(entry);
    timer = setTimeout(work, 0);
  }

  function post(entry) {
    const report = entry.run.report();
    entry.reported = performance.now();
    scope.postMessage(report, [report.outputs.buffer]);
    if (report.done) runs = runs.filter((other) => other !== entry);
  }

  scope.onmessage = ({ data }) => {
    if (data.type === "start") {
      runs = data.seeds.map((seed) => ({ run: makeRun(data.run, seed), reported: -Infinity }));
    }
    isPaused = data.type === "pause";
    if (!timer) timer = setTimeout(work, 0);
  };
}
