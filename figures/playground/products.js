// Matrix products in plain JavaScript. Matrices are Float32Arrays in C order.

// C (M, N) = A (M, K) @ B (K, N), or A^T @ B with A (K, M) if `transposed`, in blocks of 4 x 4 whose
// sixteen sums stay in registers: this loop is where training spends its time.
export function multiply(c, a, b, M, K, N, transposed = false) {
  const rows = M - (M % 4), columns = N - (N % 4);
  const down = transposed ? M : 1, across = transposed ? 1 : K;  // strides of A along K and along M
  for (let m = 0; m < rows; m += 4) {
    for (let n = 0; n < columns; n += 4) {
      let c00 = 0, c01 = 0, c02 = 0, c03 = 0, c10 = 0, c11 = 0, c12 = 0, c13 = 0;
      let c20 = 0, c21 = 0, c22 = 0, c23 = 0, c30 = 0, c31 = 0, c32 = 0, c33 = 0;
      let i = m * across, j = n;
      for (let k = 0; k < K; k++, i += down, j += N) {
        const b0 = b[j], b1 = b[j + 1], b2 = b[j + 2], b3 = b[j + 3];
        const a0 = a[i], a1 = a[i + across], a2 = a[i + 2 * across], a3 = a[i + 3 * across];
        c00 += a0 * b0; c01 += a0 * b1; c02 += a0 * b2; c03 += a0 * b3;
        c10 += a1 * b0; c11 += a1 * b1; c12 += a1 * b2; c13 += a1 * b3;
        c20 += a2 * b0; c21 += a2 * b1; c22 += a2 * b2; c23 += a2 * b3;
        c30 += a3 * b0; c31 += a3 * b1; c32 += a3 * b2; c33 += a3 * b3;
      }
      let o = m * N + n;
      c[o] = c00; c[o + 1] = c01; c[o + 2] = c02; c[o + 3] = c03; o += N;
      c[o] = c10; c[o + 1] = c11; c[o + 2] = c12; c[o + 3] = c13; o += N;
      c[o] = c20; c[o + 1] = c21; c[o + 2] = c22; c[o + 3] = c23; o += N;
      c[o] = c30; c[o + 1] = c31; c[o + 2] = c32; c[o + 3] = c33;
    }
  }
  for (let m = 0; m < M; m++) {
    for (let n = m < rows ? columns : 0; n < N; n++) {
      let sum = 0;
      for (let k = 0, i = m * across, j = n; k < K; k++, i += down, j += N) sum += a[i] * b[j];
      c[m * N + n] = sum;
    }
  }
}

// B (N, M) = A^T of A (M, N)
export function transpose(b, a, M, N) {
  for (let m = 0; m < M; m++) {
    for (let n = 0; n < N; n++) b[n * M + m] = a[m * N + n];
  }
}
