// A decoder in plain JavaScript. live.py writes a network as a list of operations; here each is a
// function of one array, {shape, values}, that gives the next. All arrays are in C order: the last
// index varies fastest, and the entry (y, x, c) of an image of width W and C channels is number
// (y * W + x) * C + c.

// Operations, their arrays decoded -> {draw}, and draw(code) -> {output, activations}: the task's prediction
// as a Float32Array, and {name, shape, values} of every layer, the code first. Names and shapes are
// those of JAX.
export function makeNetwork(operations) {
  const prepared = operations.map((operation) => (operation.op === "embed" ? withUnitVectors(operation) : operation));
  return {
    draw(code) {
      let array = { shape: [code.length], values: Float32Array.from(code) };
      const activations = [{ name: "layer_00", ...array }];
      for (const operation of prepared) {
        array = OPERATIONS[operation.op](array, operation);
        if (operation.layer) activations.push({ name: operation.layer, ...array });
      }
      return { output: array.values, activations };
    },
  };
}

const OPERATIONS = {
  dense,
  conv_transpose: convTranspose,
  embed,
  add_position: addPosition,
  reshape: (x, { shape }) => ({ shape, values: x.values }),
  relu: (x) => map(x, (value) => (value > 0 ? value : 0)),
  prelu: (x, { negative_slope: { values: [slope] } }) => map(x, (value) => (value < 0 ? slope * value : value)),
  sigmoid: (x) => map(x, (value) => 1 / (1 + Math.exp(-value))),
  affine: (x, { scale, shift }) => map(x, (value) => scale * value + shift),
};

function map(x, f) {
  return { shape: x.shape, values: x.values.map(f) };
}

// sums += row @ kernel (I, O), for the `length` entries of x from `start` on, and the rows of the
// kernel from `first` on. This loop is where a drawing spends its time. It reads the kernel in the
// order in which it lies in memory, and skips what a ReLU has set to 0: half of all products.
function addProduct(sums, x, start, length, kernel, first) {
  const size = sums.length;
  for (let i = 0; i < length; i++) {
    const value = x[start + i];
    if (value === 0) continue;
    const row = (first + i) * size;
    for (let o = 0; o < size; o++) sums[o] += value * kernel[row + o];
  }
}

// Every vector along the last axis by the same matrix.
function dense(x, { kernel, bias }) {
  const [inputs, outputs] = kernel.shape;
  const rows = x.values.length / inputs;
  const values = new Float32Array(rows * outputs);
  const sums = new Float64Array(outputs);
  for (let row = 0; row < rows; row++) {
    for (let o = 0; o < outputs; o++) sums[o] = bias.values[o % bias.values.length];
    addProduct(sums, x.values, row * inputs, inputs, kernel.values, 0);
    values.set(sums, row * outputs);
  }
  return { shape: [...x.shape.slice(0, -1), outputs], values };
}

// As `lax.conv_transpose` with 'SAME' padding: the image's pixels are set `stride` apart, with zeros
// between and around them, and correlated with the kernel, which is not flipped. So output row r
// reads through kernel row t the input row (r + t - pad) / stride, if that is a row of the input.
// With stride 1, `dilation` multiplies the distance t - pad.
function convTranspose(x, { kernel, bias, dilation = 1 }) {
  const [height, width, inputs] = x.shape;
  const [side, , , outputs] = kernel.shape;
  const stride = side === 4 ? 2 : 1;
  const values = new Float32Array(height * stride * width * stride * outputs);
  const sums = new Float64Array(outputs);
  const rowTaps = taps(height, side, stride, dilation);
  const columnTaps = taps(width, side, stride, dilation);
  let pixel = 0;
  for (const rows of rowTaps) {
    for (const columns of columnTaps) {
      sums.set(bias.values);
      for (const [t, row] of rows) {
        for (const [u, column] of columns) {
          const start = (row * width + column) * inputs;
          addProduct(sums, x.values, start, inputs, kernel.values, (t * side + u) * inputs);
        }
      }
      values.set(sums, pixel++ * outputs);
    }
  }
  return { shape: [height * stride, width * stride, outputs], values };
}

// For every output row (or column): the pairs [kernel row, input row] that it sums over.
function taps(length, side, stride, dilation) {
  const pad = Math.ceil((side + stride - 2) / 2);
  return Array.from({ length: length * stride }, (_, place) => {
    const pairs = [];
    for (let t = 0; t < side; t++) {
      const from = (place + (t - pad) * dilation) / stride;
      if (Number.isInteger(from) && from >= 0 && from < length) pairs.push([t, from]);
    }
    return pairs;
  });
}

// The low-rank decoder's first layer. A factor's part of the code weighs its tokens' terms, and the
// embedding is sum_k values_k left_k right_k^T, of vectors that are scaled to unit length, one
// channel of the image for each factor.
function embed(code, { factors }) {
  const [, terms, height] = factors[0].left.shape;
  const width = factors[0].right.shape[2];
  const values = new Float32Array(height * width * factors.length);
  let start = 0;
  factors.forEach((factor, channel) => {
    const sizes = new Float64Array(terms);
    const left = new Float64Array(terms * height);
    const right = new Float64Array(terms * width);
    const tokens = factor.left.shape[0];
    addProduct(sizes, code.values, start, tokens, factor.values.values, 0);
    addProduct(left, code.values, start, tokens, factor.left.values, 0);
    addProduct(right, code.values, start, tokens, factor.right.values, 0);
    start += tokens;
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        let sum = 0;
        for (let k = 0; k < terms; k++) sum += sizes[k] * left[k * height + y] * right[k * width + x];
        values[(y * width + x) * factors.length + channel] = sum;
      }
    }
  });
  return { shape: [height, width, factors.length], values };
}

function withUnitVectors({ factors, ...operation }) {
  const unit = ({ values, left, right }) => ({ values, left: unitVectors(left), right: unitVectors(right) });
  return { ...operation, factors: factors.map(unit) };
}

function unitVectors({ shape, values }) {
  const length = shape[2], unit = new Float32Array(values.length);
  for (let start = 0; start < values.length; start += length) {
    let square = 0;
    for (let k = start; k < start + length; k++) square += values[k] ** 2;
    for (let k = start; k < start + length; k++) unit[k] = values[k] / Math.sqrt(Math.max(square, 1e-24));
  }
  return { shape, values: unit };
}

// The per-pixel decoder's first layer: every pixel gets the token, or its own, and its position.
function addPosition(token, { axis }) {
  const [side, half] = axis.shape, isShared = token.shape.length === 1;
  const values = new Float32Array(side * side * 2 * half);
  for (let y = 0, at = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const first = isShared ? 0 : at;
      for (let c = 0; c < half; c++) values[at++] = token.values[first + c] + axis.values[x * half + c];
      for (let c = 0; c < half; c++) values[at++] = token.values[first + half + c] + axis.values[y * half + c];
    }
  }
  return { shape: [side, side, 2 * half], values };
}
