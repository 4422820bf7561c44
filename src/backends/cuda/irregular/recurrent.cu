/* RNN, GRU and LSTM: the inputs' share of all gates as one matrix product, then the steps. A warp sums the gates of a
 * unit; a block has either one sample of one direction and all of its steps (HN_WHOLE), or some units of one direction
 * and all samples of one step, so that all multiprocessors share the recurrent weights.
 *
 * Prefix: HN_GATES (1, 3, 4), HN_LATER (GRU: the reset gate is applied behind the product), HN_COUPLED (LSTM: forget is
 * 1 - input), HN_WHOLE, HN_BACKWARDS (the only direction runs backwards), HN_BATCH_FIRST
 * p: steps, samples, inputs, hidden, directions; from 8 kinds of the activations (HN_ACT_*: hn_activation_kind) of both
 * directions, three each. f: their alphas, from 6 their betas, at 12 the clip or 0.
 * Workspace, in HN_REAL: gates [row of X][direction][gate][unit], states h twice, c, then update gate and reset state of
 * GRU, [direction][sample][unit] each. */
#include "direct.cuh"

#define HN_SAMPLES (HN_WHOLE ? 1 : 4) /* that a warp sums at once */

enum { HN_UNITS = 8, HN_TILE = 64, HN_DEPTH = 16 };

HN_FN i64 hn_states(const hn_direct_args *a) { return a->p[4] * a->p[1] * a->p[3]; }
HN_FN HN_REAL *hn_gate_rows(const hn_direct_args *a) { return (HN_REAL *)a->work; }
HN_FN HN_REAL *hn_state(const hn_direct_args *a, int which) {
  return hn_gate_rows(a) + a->p[0] * a->p[1] * a->p[4] * HN_GATES * a->p[3] + which * hn_states(a);
}

/* ---- gates of all steps: [steps * samples][inputs] x [directions * gates * hidden][inputs], 64 x 64 of it a block */
HN_EACH_BLOCK(hn_rnn_inputs) {
  HN_SHARED HN_REAL x[HN_DEPTH][HN_TILE + 1], w[HN_DEPTH][HN_TILE + 1];
  const i64 rows = a->p[0] * a->p[1], depth = a->p[2], gh = HN_GATES * a->p[3], columns = a->p[4] * gh;
  const u32 wide = (u32)((columns + HN_TILE - 1) / HN_TILE), t = threadIdx.x;
  const i64 row = (i64)(i / wide) * HN_TILE, column = (i64)(i % wide) * HN_TILE;
  const u32 tr = t / 16 * 4, tc = t % 16 * 4;
  HN_REAL sum[4][4] = {{0}};
  for (i64 k = 0; k < depth; k += HN_DEPTH) {
    HN_SYNC();
    for (u32 e = t; e < HN_DEPTH * HN_TILE; e += 256) {
      const u32 line = e / HN_DEPTH, at = e % HN_DEPTH;
      x[at][line] = row + line < rows && k + at < depth ? (HN_REAL)HN_IN(0, (row + line) * depth + k + at) : 0;
      w[at][line] = column + line < columns && k + at < depth ? (HN_REAL)HN_IN(1, (column + line) * depth + k + at) : 0;
    }
    HN_SYNC();
    for (int at = 0; at < HN_DEPTH; at++)
      HN_UNROLL for (int r = 0; r < 4; r++) HN_UNROLL for (int c = 0; c < 4; c++) sum[r][c] += x[at][tr + r] * w[at][tc + c];
  }
  for (int c = 0; c < 4; c++) {
    const i64 at = column + tc + c, direction = at / gh, gate = at - direction * gh;
    HN_REAL bias = 0;
    if (at >= columns) break;
#ifdef HN_I3
    bias = HN_IN(3, direction * 2 * gh + gate);
    if (!(HN_LATER && gate >= 2 * a->p[3])) bias += HN_IN(3, direction * 2 * gh + gh + gate);
#endif
    for (int r = 0; r < 4; r++)
      if (row + tr + r < rows) hn_gate_rows(a)[(row + tr + r) * columns + at] = sum[r][c] + bias;
  }
}

/* ---- states before the first step and behind the last one. A thread a state. */
HN_FN i64 hn_outer_state(const hn_direct_args *a, u32 i) {
  const u32 hidden = (u32)a->p[3], line = i / hidden, direction = line / (u32)a->p[1];
  if (!HN_BATCH_FIRST) return i;
  return ((i64)(line - direction * (u32)a->p[1]) * a->p[4] + direction) * hidden + (i - line * hidden);
}

HN_EACH(hn_rnn_begin) {
  HN_REAL h = 0, c = 0;
#ifdef HN_I5
  h = HN_IN(5, hn_outer_state(a, i));
#endif
#ifdef HN_I6
  c = HN_IN(6, hn_outer_state(a, i));
#endif
  hn_state(a, 0)[i] = h, hn_state(a, 2)[i] = c;
}

HN_EACH(hn_rnn_end) {
#ifdef HN_O1
  HN_OUT(1, hn_outer_state(a, i), hn_state(a, (int)(a->p[0] & 1))[i]);
#endif
#ifdef HN_O2
  HN_OUT(2, hn_outer_state(a, i), hn_state(a, 2)[i]);
#endif
  (void)a, (void)i;
}

/* ---- a step */
HN_FN double hn_apply(const hn_direct_args *a, int which, double x) {
  const double alpha = a->f[which], beta = a->f[6 + which];
  switch (a->p[8 + which]) { /* in the order of hn_activation_kind */
  case 0: return x > 0 ? x : x == x ? 0 : x;
  case 1: return tanh((HN_REAL)x);
  case 2: return x >= 0 ? 1 / (1 + exp((HN_REAL)-x)) : exp((HN_REAL)x) / (1 + exp((HN_REAL)x));
  case 3: return alpha * x + beta;
  case 4: return x >= 0 ? x : alpha * x;
  case 5: return x >= alpha ? x : 0;
  case 6: return alpha * tanh((HN_REAL)(beta * x));
  case 7: return fmin(fmax(alpha * x + beta, 0.0), 1.0);
  case 8: return x >= 0 ? x : alpha * expm1((HN_REAL)x);
  case 9: return x / (1 + fabs(x));
  default: return x > 0 ? x + log1p(exp((HN_REAL)-x)) : log1p(exp((HN_REAL)x));
  }
}
HN_FN double hn_activate(const hn_direct_args *a, int which, double x) {
  const double clip = a->f[12];
  if (clip > 0) x = x > clip ? clip : x < -clip ? -clip : x;
  return hn_apply(a, which, x);
}

/* Sums over a warp. */
HN_FN float hn_warp_sum_float(float x) { return hn_warp_sum(x); }
HN_FN double hn_warp_sum_double(double x) {
  for (int m = 16; m; m >>= 1) {
    const u64 bits = hn_double_bits(x);
    x += hn_double((u64)hn_shfl_xor_u32((u32)(bits >> 32), m) << 32 | hn_shfl_xor_u32((u32)bits, m));
  }
  return x;
}
#define hn_warp_sum_real HN_PASTE(hn_warp_sum_, HN_REAL)

/* Rows of unit j's recurrent weights, `gates` of them from `gate` on, times the states of HN_SAMPLES samples `between`
 * elements apart, in all lanes. */
HN_FN void hn_recurrent(const hn_direct_args *a, i64 direction, int gate, int gates, i64 j, const HN_REAL *state, i64 between,
                        HN_REAL sum[HN_GATES][HN_SAMPLES]) {
  const i64 n = a->p[3], row = ((direction * HN_GATES + gate) * n + j) * n;
  HN_UNROLL for (int g = 0; g < gates; g++) HN_UNROLL for (int s = 0; s < HN_SAMPLES; s++) sum[g][s] = 0;
  for (i64 k = threadIdx.x % 32; k < n; k += 32) {
    HN_REAL h[HN_SAMPLES];
    HN_UNROLL for (int s = 0; s < HN_SAMPLES; s++) h[s] = state[s * between + k];
    HN_UNROLL for (int g = 0; g < gates; g++) {
      const HN_REAL w = HN_IN(2, row + g * n * n + k);
      HN_UNROLL for (int s = 0; s < HN_SAMPLES; s++) sum[g][s] += w * h[s];
    }
  }
  HN_UNROLL for (int g = 0; g < gates; g++) HN_UNROLL for (int s = 0; s < HN_SAMPLES; s++) sum[g][s] = hn_warp_sum_real(sum[g][s]);
}

/* Unit j of HN_SAMPLES samples in their k-th step; samples behind the last one are computed as the last. Phase 1: GRU's
 * hidden gate, which needs the reset states of all units. The whole warp sums, then a lane has a sample. */
HN_FN void hn_unit_step(const hn_direct_args *a, i64 direction, i64 from, i64 j, i64 k, int phase) {
  const i64 steps = a->p[0], n = a->p[3], batch = a->p[1], lane = threadIdx.x % 32;
  const i64 most = batch - from < HN_SAMPLES ? batch - from : HN_SAMPLES;
  const i64 sample = from + (lane < most ? lane : most - 1);
  const i64 first = (direction * batch + from) * n, line = (direction * batch + sample) * n, at = line + j;
  const HN_REAL *h = hn_state(a, (int)(k & 1));
  HN_REAL *next = hn_state(a, (int)((k + 1) & 1)), *cell = hn_state(a, 2), *update = hn_state(a, 3), *reset = hn_state(a, 4);
  const int act = 3 * (int)direction, two = HN_GATES == 3 && !HN_LATER;
  HN_REAL sums[HN_GATES][HN_SAMPLES], sum[HN_GATES];
  (void)cell, (void)update, (void)reset, (void)act, (void)two;
  /* The states of fewer samples than that lie before others or other states: they may be read, and are not used. */
  if (two && phase == 1)
    hn_recurrent(a, direction, 2, 1, j, reset + first, n, sums);
  else
    hn_recurrent(a, direction, 0, two ? 2 : HN_GATES, j, h + first, n, sums);
  HN_UNROLL for (int g = 0; g < HN_GATES; g++) {
    sum[g] = sums[g][0];
    HN_UNROLL for (int s = 1; s < HN_SAMPLES; s++) if (lane == s) sum[g] = sums[g][s];
  }
  if (lane >= most) return;
  i64 length = steps;
#ifdef HN_I4
  length = (i64)HN_IN(4, sample);
  length = length < 0 ? 0 : length > steps ? steps : length;
#endif
  if (k >= length) {
    if (phase == two) next[at] = h[at];
    return;
  }
  const i64 t = HN_BACKWARDS || direction ? length - 1 - k : k;
  const i64 row = HN_BATCH_FIRST ? sample * steps + t : t * batch + sample;
  const HN_REAL *x = hn_gate_rows(a) + (row * a->p[4] + direction) * HN_GATES * n + j;
  double result;
#if HN_GATES == 1
  result = hn_activate(a, act, x[0] + sum[0]);
#elif HN_GATES == 3 && HN_LATER
  {
    const double z = hn_activate(a, act, x[0] + sum[0]), r = hn_activate(a, act, x[n] + sum[1]);
    double hidden = sum[2];
#ifdef HN_I3
    hidden += HN_IN(3, direction * 6 * n + 5 * n + j);
#endif
    result = (1 - z) * hn_activate(a, act + 1, x[2 * n] + r * hidden) + z * h[at];
  }
#elif HN_GATES == 3
  if (phase == 0) {
    update[at] = (HN_REAL)hn_activate(a, act, x[0] + sum[0]);
    reset[at] = (HN_REAL)(hn_activate(a, act, x[n] + sum[1]) * h[at]);
    return;
  }
  result = (1 - update[at]) * hn_activate(a, act + 1, x[2 * n] + sum[0]) + update[at] * h[at];
#else
  {
    const double c = cell[at];
    double gate[4];
    HN_UNROLL for (int g = 0; g < 4; g++) gate[g] = x[g * n] + sum[g];
#ifdef HN_I7
    gate[0] += HN_IN(7, direction * 3 * n + j) * c;
    gate[2] += HN_IN(7, direction * 3 * n + 2 * n + j) * c;
#endif
    const double in = hn_activate(a, act, gate[0]), forget = HN_COUPLED ? 1 - in : hn_activate(a, act, gate[2]);
    const double now = forget * c + in * hn_activate(a, act + 1, gate[3]);
#ifdef HN_I7
    gate[1] += HN_IN(7, direction * 3 * n + n + j) * now;
#endif
    /* clip bounds what enters the gates, not the cell */
    result = hn_activate(a, act, gate[1]) * hn_apply(a, act + 2, now);
    cell[at] = (HN_REAL)now;
  }
#endif
  next[at] = (HN_REAL)result;
#ifdef HN_O0
  HN_OUT(0, (HN_BATCH_FIRST ? row * a->p[4] + direction : (t * a->p[4] + direction) * batch + sample) * n + j, result);
#endif
}

HN_EACH_BLOCK_OF(hn_rnn_steps, HN_WHOLE ? 1024 : 256) {
  const i64 n = a->p[3], samples = a->p[1];
  const i64 warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int phases = HN_GATES == 3 && !HN_LATER ? 2 : 1;
#if HN_WHOLE
  for (i64 k = 0; k < a->p[0]; k++)
    for (int phase = 0; phase < phases; phase++) {
      for (i64 j = warp; j < n; j += warps) hn_unit_step(a, i / samples, i % samples, j, k, phase);
      HN_SYNC();
    }
#else
  const i64 chunks = (n + HN_UNITS - 1) / HN_UNITS, j = i % chunks * HN_UNITS + warp;
  (void)warps;
  for (i64 sample = 0; sample < samples && j < n; sample += HN_SAMPLES)
    hn_unit_step(a, i / chunks, sample, j, a->turn / phases, (int)(a->turn % phases));
#endif
}
