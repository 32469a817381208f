// The arrays of arrays.py.

const VIEWS = {
  float32: Float32Array, uint8: Uint8Array, int8: Int8Array,
  uint16: Uint16Array, int16: Int16Array, int32: Int32Array,
};

// What `arrays.encode` of Python wrote: {dtype, shape, deflate, ...} -> {dtype, shape, values, ...}.
// It writes numbers little-endian, as typed arrays have them in every browser of today.
export async function decodeArray({ deflate, ...entry }) {
  const bytes = Uint8Array.from(atob(deflate), (letter) => letter.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return { ...entry, values: new VIEWS[entry.dtype](await new Response(inflated).arrayBuffer()) };
}

// A copy of a part of the page's data in which every array is decoded.
export async function decodeArrays(part) {
  if (part === null || typeof part !== "object") return part;
  if (typeof part.deflate === "string") return decodeArray(part);
  if (Array.isArray(part)) return Promise.all(part.map(decodeArrays));
  const pairs = Object.entries(part).map(async ([name, value]) => [name, await decodeArrays(value)]);
  return Object.fromEntries(await Promise.all(pairs));
}
