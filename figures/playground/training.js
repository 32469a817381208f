// A decoder, as network.js runs it, with its derivatives and AdamW. An operation becomes a layer:
// {shape, values, gradient, forward(count), backward(count)}, whose arrays have room for a batch.
// `forward` fills `values` from those of the layer before; `backward` takes `gradient`, fills that
// of the layer before, and those of its own parameters. No step allocates an array.

import { multiply, transpose } from "products";

// operations -> {parameters, step(codes, targets, count, rate, decay), run(codes, count)}: `step`
// returns the mean squared error of a batch of `count` examples, and `run` their outputs, a
// Float32Array with room for `batch`. The operations' own arrays are trained.
export function makeTrainer(operations, codeSize, batch) {
  const parameters = [];
  const parameter = (array) => {
    const zeros = () => new Float32Array(array.values.length);
    const entry = { values: array.values, gradient: zeros(), mean: zeros(), square: zeros() };
    parameters.push(entry);
    return entry;
  };
  const input = { ...room([codeSize], batch), gradient: null };
  const layers = [];
  let last = input;
  for (const operation of operations) {
    last = LAYERS[operation.op](last, operation, parameter, batch);
    layers.push(last);
  }
  const size = last.values.length / batch, output = last;
  let steps = 0;

  function run(codes, count) {
    input.values.set(codes.subarray(0, count * codeSize));
    for (const layer of layers) layer.forward(count);
    return output.values;
  }

  // the gradients of the mean squared error, and of penalties
  function differentiate(codes, targets, count) {
    run(codes, count);
    let error = 0;
    const share = 1 / (count * size);
    for (let k = 0; k < count * size; k++) {
      const off = output.values[k] - targets[k];
      error += off * off;
      output.gradient[k] = 2 * share * off;
    }
    for (let k = layers.length - 1; k >= 0; k--) layers[k].backward(count);
    return error * share;
  }

  function step(codes, targets, count, { rate, decay }) {
    const error = differentiate(codes, targets, count);
    steps += 1;
    const first = rate / (1 - 0.9 ** steps), second = 1 / (1 - 0.999 ** steps), kept = 1 - rate * decay;
    for (const { values, gradient, mean, square } of parameters) {
      for (let k = 0; k < values.length; k++) {
        const g = gradient[k];
        mean[k] = 0.9 * mean[k] + 0.1 * g;
        square[k] = 0.999 * square[k] + 0.001 * g * g;
        values[k] = kept * values[k] - first * mean[k] / (Math.sqrt(second * square[k]) + 1e-8);
      }
    }
    return error;
  }

  return { parameters, run, differentiate, step };
}

function room(shape, batch) {
  const size = batch * shape.reduce((a, b) => a * b, 1);
  return { shape, values: new Float32Array(size), gradient: new Float32Array(size) };
}

const LAYERS = { dense, conv_transpose: convTranspose, embed, add_position: addPosition, reshape, relu, prelu };

function reshape(x, { shape }) {
  return { shape, values: x.values, gradient: x.gradient, forward() {}, backward() {} };
}

function dense(x, { kernel, bias }, parameter, batch) {
  const [inputs, outputs] = kernel.shape;
  const y = room([...x.shape.slice(0, -1), outputs], batch);
  const rows = x.values.length / batch / inputs;
  const product = makeProduct(inputs, outputs, parameter(kernel));
  const { values: shift, gradient: ofShift } = parameter(bias);
  return {
    ...y,
    forward(count) {
      product.forward(y.values, x.values, count * rows);
      for (let row = 0, end = count * rows * outputs; row < end; row += shift.length) {
        for (let o = 0; o < shift.length; o++) y.values[row + o] += shift[o];
      }
    },
    backward(count) {
      ofShift.fill(0);
      for (let row = 0, end = count * rows * outputs; row < end; row += shift.length) {
        for (let o = 0; o < shift.length; o++) ofShift[o] += y.gradient[row + o];
      }
      product.backward(x.gradient, x.values, y.gradient, count * rows);
    },
  };
}

// Y = X @ W, and what a gradient of Y gives X and W
function makeProduct(inputs, outputs, { values, gradient }) {
  const turned = new Float32Array(inputs * outputs);
  return {
    forward: (y, x, rows) => multiply(y, x, values, rows, inputs, outputs),
    backward(ofX, x, ofY, rows) {
      multiply(gradient, x, ofY, inputs, rows, outputs, true);
      if (!ofX) return;
      transpose(turned, values, inputs, outputs);
      multiply(ofX, ofY, turned, rows, outputs, inputs);
    },
  };
}

// As network.js has it. Output pixels that read through the same taps of the kernel are one product:
// all of them if the stride is 1, and every second row and column if it is 2.
function convTranspose(x, { kernel, bias }, parameter, batch) {
  const [height, width, inputs] = x.shape, [side, , , outputs] = kernel.shape;
  const stride = side === 4 ? 2 : 1, pad = Math.ceil((side + stride - 2) / 2);
  const y = room([height * stride, width * stride, outputs], batch);
  const whole = parameter(kernel), { values: shift, gradient: ofShift } = parameter(bias);
  const pixelsIn = height * width, pixelsOut = pixelsIn * stride * stride;
  const classes = [];
  for (let row = 0; row < stride; row++) {
    for (let column = 0; column < stride; column++) {
      const along = (first) => [...Array(side).keys()].filter((t) => (first + t - pad) % stride === 0);
      const taps = along(row).flatMap((t) => along(column).map((u) => [t, u]));
      const to = [], from = [];  // output pixels, and for each tap the input pixel, or -1
      for (let r = row; r < height * stride; r += stride) {
        for (let c = column; c < width * stride; c += stride) {
          to.push(r * width * stride + c);
          for (const [t, u] of taps) {
            const i = (r + t - pad) / stride, j = (c + u - pad) / stride;
            from.push(i >= 0 && i < height && j >= 0 && j < width ? i * width + j : -1);
          }
        }
      }
      const read = taps.length * inputs, zeros = (size) => new Float32Array(size);
      const part = { values: zeros(read * outputs), gradient: zeros(read * outputs) };
      classes.push({
        to: Int32Array.from(to), from: Int32Array.from(from), taps: taps.map(([t, u]) => t * side + u), part,
        product: makeProduct(read, outputs, part),
        windows: zeros(batch * to.length * read), ofWindows: zeros(batch * to.length * read),
        drawn: zeros(batch * to.length * outputs), ofDrawn: zeros(batch * to.length * outputs),
      });
    }
  }

  return {
    ...y,
    forward(count) {
      for (const { to, from, taps, part, product, windows, drawn } of classes) {
        taps.forEach((tap, k) => part.values.set(whole.values.subarray(tap * inputs * outputs, (tap + 1) * inputs * outputs), k * inputs * outputs));
        for (let b = 0, w = 0; b < count; b++) {
          for (let k = 0; k < from.length; k++, w += inputs) {
            if (from[k] < 0) continue;  // there a window stays 0
            const start = (b * pixelsIn + from[k]) * inputs;
            for (let i = 0; i < inputs; i++) windows[w + i] = x.values[start + i];
          }
        }
        product.forward(drawn, windows, count * to.length);
        for (let b = 0, d = 0; b < count; b++) {
          for (let k = 0; k < to.length; k++, d += outputs) {
            const start = (b * pixelsOut + to[k]) * outputs;
            for (let o = 0; o < outputs; o++) y.values[start + o] = drawn[d + o] + shift[o];
          }
        }
      }
    },
    backward(count) {
      ofShift.fill(0);
      x.gradient.fill(0, 0, count * pixelsIn * inputs);
      for (const { to, from, taps, part, product, windows, ofWindows, ofDrawn } of classes) {
        for (let b = 0, d = 0; b < count; b++) {
          for (let k = 0; k < to.length; k++, d += outputs) {
            const start = (b * pixelsOut + to[k]) * outputs;
            for (let o = 0; o < outputs; o++) {
              ofDrawn[d + o] = y.gradient[start + o];
              ofShift[o] += y.gradient[start + o];
            }
          }
        }
        product.backward(ofWindows, windows, ofDrawn, count * to.length);
        taps.forEach((tap, k) => whole.gradient.set(part.gradient.subarray(k * inputs * outputs, (k + 1) * inputs * outputs), tap * inputs * outputs));
        for (let b = 0, w = 0; b < count; b++) {
          for (let k = 0; k < from.length; k++, w += inputs) {
            if (from[k] < 0) continue;
            const start = (b * pixelsIn + from[k]) * inputs;
            for (let i = 0; i < inputs; i++) x.gradient[start + i] += ofWindows[w + i];
          }
        }
      }
    },
  };
}

function relu(x) {
  const y = { ...x, values: new Float32Array(x.values.length), gradient: new Float32Array(x.values.length) };
  const size = x.values.length;
  return {
    ...y,
    forward() { for (let k = 0; k < size; k++) y.values[k] = x.values[k] > 0 ? x.values[k] : 0; },
    backward() { for (let k = 0; k < size; k++) x.gradient[k] = x.values[k] > 0 ? y.gradient[k] : 0; },
  };
}

function prelu(x, { negative_slope: array }, parameter, batch) {
  const y = room(x.shape, batch), slope = parameter(array), each = x.values.length / batch;
  return {
    ...y,
    forward(count) {
      const below = slope.values[0];
      for (let k = 0; k < count * each; k++) y.values[k] = x.values[k] < 0 ? below * x.values[k] : x.values[k];
    },
    backward(count) {
      const below = slope.values[0];
      let sum = 0;
      for (let k = 0; k < count * each; k++) {
        const isBelow = x.values[k] < 0;
        if (isBelow) sum += y.gradient[k] * x.values[k];
        x.gradient[k] = isBelow ? below * y.gradient[k] : y.gradient[k];
      }
      slope.gradient[0] = sum;
    },
  };
}

// A token for the whole image, or one for each pixel, and the pixel's position
function addPosition(x, { axis }, parameter, batch) {
  const [side, half] = axis.shape, width = 2 * half, each = side * side * width;
  const y = room([side, side, width], batch), isShared = x.shape.length === 1;
  const position = new Float32Array(each);
  for (let pixel = 0; pixel < side * side; pixel++) {
    const column = pixel % side, row = (pixel - column) / side;
    position.set(axis.values.subarray(column * half, (column + 1) * half), pixel * width);
    position.set(axis.values.subarray(row * half, (row + 1) * half), pixel * width + half);
  }
  return {
    ...y,
    forward(count) {
      for (let b = 0, k = 0; b < count; b++) {
        for (let pixel = 0; pixel < each; pixel += width) {
          const start = isShared ? b * width : k;
          for (let c = 0; c < width; c++, k++) y.values[k] = position[pixel + c] + x.values[start + c];
        }
      }
    },
    backward(count) {
      if (!isShared) return void x.gradient.set(y.gradient);
      x.gradient.fill(0, 0, count * width);
      for (let b = 0, k = 0; b < count; b++) {
        for (let pixel = 0; pixel < each; pixel += width) {
          for (let c = 0; c < width; c++, k++) x.gradient[b * width + c] += y.gradient[k];
        }
      }
    },
  };
}

// The low-rank decoder's first layer, whose code is one-hot or, for a missing factor, zero; and its
// `penalty`, {entropy, variance}, the paper's Eq 10 and 11.
function embed(x, { factors, penalty = { entropy: 0, variance: 0 } }, parameter, batch) {
  const height = factors[0].left.shape[2], width = factors[0].right.shape[2], terms = factors[0].left.shape[1];
  const channels = factors.length, codeSize = x.shape[0];
  const y = room([height, width, channels], batch);
  let first = 0;
  const parts = factors.map(({ values, left, right }) => {
    const tokens = left.shape[0], start = first;
    first += tokens;
    return {
      start, tokens, sizes: parameter(values),
      left: unitVectors(parameter(left), tokens * terms, height), right: unitVectors(parameter(right), tokens * terms, width),
    };
  });
  const tokenOf = ({ start, tokens }, b) => {
    for (let t = 0; t < tokens; t++) if (x.values[b * codeSize + start + t] !== 0) return t;
    return -1;
  };
  return {
    ...y,
    forward(count) {
      y.values.fill(0, 0, count * height * width * channels);
      parts.forEach((part, channel) => {
        part.left.scale();
        part.right.scale();
        const { sizes, left: { unit: l }, right: { unit: r } } = part;
        for (let b = 0; b < count; b++) {
          const token = tokenOf(part, b);
          if (token < 0) continue;
          for (let k = 0, row = token * terms; k < terms; k++, row++) {
            for (let i = 0; i < height; i++) {
              const weight = sizes.values[row] * l[row * height + i];
              for (let j = 0, o = (b * height + i) * width * channels + channel; j < width; j++, o += channels) y.values[o] += weight * r[row * width + j];
            }
          }
        }
      });
    },
    backward(count) {
      parts.forEach((part, channel) => {
        const { sizes, left: { unit: l, ofUnit: ofL }, right: { unit: r, ofUnit: ofR } } = part;
        for (const array of [sizes.gradient, ofL, ofR]) array.fill(0);
        for (let b = 0; b < count; b++) {
          const token = tokenOf(part, b);
          if (token < 0) continue;
          for (let k = 0, row = token * terms; k < terms; k++, row++) {
            const size = sizes.values[row];
            for (let i = 0; i < height; i++) {
              let along = 0;
              const weight = size * l[row * height + i];
              for (let j = 0, o = (b * height + i) * width * channels + channel; j < width; j++, o += channels) {
                along += y.gradient[o] * r[row * width + j];
                ofR[row * width + j] += weight * y.gradient[o];
              }
              ofL[row * height + i] += size * along;
              sizes.gradient[row] += l[row * height + i] * along;
            }
          }
        }
        part.left.backward(penalty.variance);
        part.right.backward(penalty.variance);
        addEntropy(sizes, part.tokens, terms, penalty.entropy);
      });
    },
  };
}

// Vectors that are scaled to unit length at each use, and the variance of the raw ones
function unitVectors({ values, gradient }, count, length) {
  const unit = new Float32Array(values.length), ofUnit = new Float32Array(values.length), norms = new Float32Array(count);
  return {
    unit,
    ofUnit,
    scale() {
      for (let v = 0; v < count; v++) {
        let square = 0;
        for (let i = v * length; i < (v + 1) * length; i++) square += values[i] * values[i];
        norms[v] = Math.sqrt(Math.max(square, 1e-24));
        for (let i = v * length; i < (v + 1) * length; i++) unit[i] = values[i] / norms[v];
      }
    },
    backward(variance) {
      for (let v = 0; v < count; v++) {
        let along = 0, mean = 0;
        for (let i = v * length; i < (v + 1) * length; i++) {
          along += unit[i] * ofUnit[i];
          mean += values[i] / length;
        }
        for (let i = v * length; i < (v + 1) * length; i++) {
          gradient[i] = (ofUnit[i] - along * unit[i]) / norms[v] + (variance * 2 * (values[i] - mean)) / (length - 1);
        }
      }
    },
  };
}

// Adds the gradient of every token's entropy over the shares of its terms' squares
function addEntropy({ values, gradient }, tokens, terms, strength) {
  if (!strength) return;
  const SMALLEST_SHARE = 1e-8;
  for (let t = 0; t < tokens; t++) {
    let total = 0, mean = 0;
    for (let k = t * terms; k < (t + 1) * terms; k++) total += values[k] * values[k];
    if (!total) continue;
    // the derivative of -s log s by the share s, which is cut off below the smallest
    const slope = (share) => -Math.log(Math.max(share, SMALLEST_SHARE)) - (share > SMALLEST_SHARE ? 1 : 0);
    for (let k = t * terms; k < (t + 1) * terms; k++) mean += (values[k] * values[k] / total) * slope(values[k] * values[k] / total);
    for (let k = t * terms; k < (t + 1) * terms; k++) {
      gradient[k] += strength * 2 * values[k] / total * (slope(values[k] * values[k] / total) - mean);
    }
  }
}
