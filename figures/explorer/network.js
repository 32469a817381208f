// A decoder in plain JavaScript: the spec that live.py makes -> what the network draws.

const VIEWS = {
  float32: Float32Array, uint8: Uint8Array, int8: Int8Array,
  uint16: Uint16Array, int16: Int16Array, int32: Int32Array,
};

// What arrays.encode of Python wrote: {dtype, shape, base64} -> {shape, values}. Numbers are
// little-endian there, as they are in every browser's typed arrays today.
export function decodeArray(entry) {
  const bytes = Uint8Array.from(atob(entry.base64), (letter) => letter.charCodeAt(0));
  return { shape: entry.shape, values: new VIEWS[entry.dtype](bytes.buffer) };
}
