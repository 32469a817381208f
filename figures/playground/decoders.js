// The decoders of the page, with new weights from a seed: operations as network.js runs them.

// Numbers in [0, 1) from a seed: sfc32 (Chris Doty-Humphrey, 2010), after 12 rounds from (seed, 0, 0, 1).
export function generator(seed) {
  let a = seed >>> 0, b = 0, c = 0, counter = 1;
  const next = () => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let k = 0; k < 12; k++) next();
  return next;
}

export function shuffled(length, next) {
  const order = Int32Array.from({ length }, (_, k) => k);
  for (let k = length - 1; k > 0; k--) {
    const other = Math.floor(next() * (k + 1));
    [order[k], order[other]] = [order[other], order[k]];
  }
  return order;
}

// Box and Muller
const normal = (next) => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

const made = (shape, draw) => {
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
  for (let k = 0; k < values.length; k++) values[k] = draw();
  return { shape, values };
};

// PyTorch's law: U(-b, b), b = 1 / sqrt(fan in)
const uniform = (shape, fan, next) => made(shape, () => (2 * next() - 1) / Math.sqrt(fan));

function dense(inputs, outputs, next, repeats = 1) {
  const fan = inputs;
  return { op: "dense", kernel: uniform([inputs, outputs], fan, next), bias: uniform([outputs / repeats], fan, next) };
}

// of a transposed convolution the fan in is that of the outputs
function conv(side, inputs, outputs, next) {
  const fan = outputs * side * side;
  return { op: "conv_transpose", kernel: uniform([side, side, inputs, outputs], fan, next), bias: uniform([outputs], fan, next) };
}

const prelu = () => ({ op: "prelu", negative_slope: { shape: [], values: Float32Array.of(0.25) } });

// name: (grid, length of the code, settings, numbers) -> operations
const DECODERS = { conv: convDecoder, pixelwise, lowrank };

export function makeDecoder({ model, grid }, length, seed) {
  return DECODERS[model.name](grid, length, model, generator(seed));
}

// models/conv.py
function convDecoder(grid, length, { width, depth }, next) {
  const side = grid / 4, fan = width * side * side;
  const render = { op: "dense", kernel: uniform([length, side * side * width], fan, next), bias: uniform([width], fan, next) };
  const operations = [render, { op: "reshape", shape: [side, side, width] }, { op: "relu" }];
  for (let k = 1; k <= depth; k++) operations.push(conv(k <= 2 ? 4 : 3, width, width, next), { op: "relu" });
  return [...operations, conv(3, width, 1, next), { op: "reshape", shape: [grid, grid] }];
}

// models/pixelwise.py
function pixelwise(grid, length, { width, depth, shared }, next) {
  const half = width / 2, quarter = width / 4;
  const axis = new Float32Array(grid * half);
  for (let place = 0; place < grid; place++) {
    for (let k = 0; k < quarter; k++) {
      const phase = place * 10000 ** (-k / quarter);
      axis[place * half + k] = Math.sin(phase);
      axis[place * half + quarter + k] = Math.cos(phase);
    }
  }
  const token = dense(length, shared ? width : grid * grid * width, next);
  const operations = [token, ...(shared ? [] : [{ op: "reshape", shape: [grid, grid, width] }])];
  operations.push({ op: "add_position", axis: { shape: [grid, half], values: axis } });
  for (let k = 1; k <= depth; k++) operations.push(dense(width, width, next), prelu());
  return [...operations, dense(width, 1, next), { op: "reshape", shape: [grid, grid] }];
}

// models/lowrank.py
function lowrank(grid, length, { width, depth, penalty }, next) {
  const onSphere = () => {
    const array = made([grid, grid, grid], () => normal(next));
    for (let start = 0; start < array.values.length; start += grid) {
      const vector = array.values.subarray(start, start + grid), norm = Math.hypot(...vector);
      vector.forEach((value, k) => { vector[k] = value / norm; });
    }
    return array;
  };
  const factors = [0, 1].map(() => ({ values: made([grid, grid], () => normal(next) / Math.sqrt(grid)), left: onSphere(), right: onSphere() }));
  const operations = [{ op: "embed", factors, penalty }, prelu()];
  for (let k = 1; k <= depth; k++) operations.push(conv(3, k === 1 ? 2 : width, width, next), prelu());
  return [...operations, conv(3, width, 1, next), { op: "reshape", shape: [grid, grid] }];
}
