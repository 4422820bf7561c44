#include <string.h>

#include "backends/cpu/product/bf16_driver.h"
#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/kernels/features.h"
#include "base/integers.h"

/* Positions of dimension i.  Index j of the plane of remainder f is the input coordinate j * stride + f -
 * pad.  The taps of the outputs read indices below `end`; those of [first, last) may be pixels.  Lines of
 * `width` may follow each other without a gap when what is read beyond a line's end is padding on both
 * readings. */
static int64_t width_of(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                        int64_t pad, uint32_t phases) {
  int64_t end = out + (kernel - 1) * dilation / stride, first = end, last = 0;
  for (int64_t f = 0; f < stride; f++) {
    if (!(phases >> f & 1)) continue;
    first = hn_min(first, hn_max(0, hn_div_up(hn_max(pad - f, 0), stride)));
    int64_t behind = in + pad - f; /* coordinates below in */
    last = hn_max(last, behind > 0 ? hn_div_up(behind, stride) : 0);
  }
  last = hn_min(last, end);
  return hn_max(hn_max(end - first, last), out);
}

/* The same for lines of a folded plane, in pixels; a multiple of the stride. */
static int64_t folded_width(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  int64_t end = (out - 1) * stride + kernel;
  int64_t w = hn_max(hn_max(end - hn_min(pad, end), hn_min(pad + in, end)), out * stride);
  return hn_div_up(w, stride);
}

static bool geometry(hn_bf16_conv *c, const char **why) {
  c->n_planes = 1;
  for (int i = 0; i < 3; i++) {
    if (c->stride[i] > 16 || c->pad[i] < 0) return *why = "a stride above 16 or negative padding", false;
    c->phases[i] = 0;
    if (c->fold && i == 2)
      c->phases[i] = 1;
    else
      for (int64_t t = 0; t < c->kernel[i]; t++) c->phases[i] |= 1u << t * c->dilation[i] % c->stride[i];
    c->n_planes *= __builtin_popcount(c->phases[i]);
    c->q[i] = c->fold && i == 2 ? folded_width(c->in[i], c->out[i], c->kernel[i], c->stride[i], c->pad[i])
                                : width_of(c->in[i], c->out[i], c->kernel[i], c->stride[i], c->dilation[i],
                                           c->pad[i], c->phases[i]);
  }
  int64_t line = c->q[2], slice = c->q[1] * line, image = c->q[0] * slice;
  c->positions = (c->batch - 1) * image + (c->out[0] - 1) * slice + (c->out[1] - 1) * line + c->out[2];
  int64_t last[3];
  for (int i = 0; i < 3; i++) last[i] = (c->kernel[i] - 1) * c->dilation[i] / c->stride[i];
  c->reach = last[0] * slice + last[1] * line + last[2];
  return true;
}

/* Bytes of the buffer for one position; direct: of the input. */
static int64_t position_bytes(const hn_bf16_conv *c) {
  if (c->direct) return c->cin * 2;
  return c->size * 2 * c->n_planes * (c->fold ? c->parts : c->c_steps);
}

/* Whether the weights of a task stay in L2 beside a part of the buffer: of a few blocks where no tap reaches
 * beyond its own position, of lines of positions else. */
static bool weights_stay(const hn_bf16_conv *c, int64_t n_tasks, size_t l2) {
  const int64_t columns = hn_div_up(c->n_panels, n_tasks) * HN_BF16_PANEL;
  const int64_t bytes = columns * c->steps * HN_BF16_STEP * 2 * c->parts;
  return bytes * 20 <= (int64_t)l2 * (c->reach == 0 ? 13 : 8);
}

#define PARTING_CYCLES 0.5  /* a weight that becomes three parts */
#define WIDENING_CYCLES 0.2 /* a code that becomes f32 */
#define PARTED_SLAB 8       /* blocks that share such weights, at least: reading these takes longest */
#define FAR_CYCLES 0.12     /* a byte of large tensors of f32 */
#define CROSSING_BYTES 6    /* a cycle, from one core's cache to another's */
/* Cycles for what comes from other cores' caches where threads have columns of the same rows: the step
 * before, whose threads had rows each, left most of these there, and the step behind finds its own there,
 * too. */
static double across(const hn_bf16_conv *c, int64_t m, int64_t n) {
  const double rows = (double)c->positions / (double)m, others = (double)(n - 1) / (double)n;
  const double read = c->direct ? rows * (double)c->cin * 2 : 0,
               left = rows * (double)c->cout * 2 / (double)n;
  return (read + left) * others / CROSSING_BYTES;
}

/* Of cycles in which weights become parts on the way, those that products do not hide. */
static double parting_shown(double part, double products) {
  const double shown = part - 0.2 * (products - 2 * part);
  return shown < 0 ? 0 : shown > part ? part : shown;
}

/* Threads' shares.  In cycles of one thread: a pair of row and column tiles costs `rows` cycles a product and
 * step, weights come at 6 bytes a cycle, an element takes 0.3 cycles or a little more a part to be brought,
 * one of weights kept as f32 as much each time that it is read. */
static void plan_tasks(hn_bf16_conv *c, const hn_bf16_ops *o, uint32_t threads, size_t l2) {
  const double products = hn_bf16_products((uint32_t)c->parts), speed = 16 / hn_bf16_rate(o);
  const double all =
      (double)(c->n_blocks * o->row_tiles * c->rows * c->n_panels * 2 * c->steps) * products * speed;
  const double weights = c->coded ? (double)hn_bf16_weights(c) * (double)c->coded / 16
                                  : (double)hn_bf16_weights(c) * 2,
               elements = (double)c->positions * (double)(c->cin * c->n_planes);
  const double a_bytes = elements * 2 * (double)c->parts;
  const double convert = c->direct ? 0
                                   : elements * (c->parts > 1   ? 0.3 * (double)c->parts
                                                 : c->narrow_in ? 0.15
                                                                : 0.4);
  double best = 0;
  int64_t many = all > 6e6 * threads ? 2 * threads : threads;
  if (all < 20000) many = 1;
  /* Slabs share L2 with the panels of weights. */
  int64_t slab_most = hn_max((int64_t)(l2 * 2 / 5) / (position_bytes(c) * c->block), 2);
  /* Many weights for few positions: rather chunks of K than the weights once more for every slab. */
  const int64_t most = 2 * (int64_t)l2;
  if (weights > (double)l2 && c->n_blocks * c->block * position_bytes(c) <= most) slab_most = c->n_blocks;
  if (weights > (double)l2 && c->parts == 3) slab_most = hn_max(slab_most, PARTED_SLAB);
  c->m_tasks = c->n_tasks = 1, c->shared = 0, c->slab = hn_min(slab_most, c->n_blocks);
  for (int64_t n = 1; n <= hn_min(many, c->n_panels); n++)
    for (int64_t m = 1; m <= hn_min(many, c->n_blocks); m++) {
      if (m * n > many) break;
      for (int shared = n > 1 && !c->direct; shared < (c->direct ? 1 : 2); shared++) {
        if (shared && (c->positions * position_bytes(c) > most || c->groups > 1)) continue;
        double turns = (double)hn_div_up(m * n * c->groups, threads);
        double share = turns * (double)(hn_div_up(c->n_blocks, m) * hn_div_up(c->n_panels, n)) /
                       (double)(c->n_blocks * c->n_panels * c->groups);
        int64_t blocks = hn_div_up(c->n_blocks, m), slab = shared ? blocks : hn_min(blocks, slab_most);
        if (!shared && c->reach == 0 && weights_stay(c, n, l2))
          slab = hn_min(slab, hn_max((int64_t)(l2 / 5) / (position_bytes(c) * c->block), 2));
        double slabs = (double)hn_div_up(blocks, slab);
        double halo = shared ? 0 : (double)c->reach / (double)(slab * c->block);
        double stream = weights / (double)n / 6;
        const double each = c->parts < 3 ? 0 : (double)hn_bf16_weights(c) / 2 / (double)n * turns;
        double part = each * PARTING_CYCLES;
        if (shared || !weights_stay(c, n, l2)) part = parting_shown(part * slabs, all * share);
        if (c->coded) part += each * WIDENING_CYCLES * slabs;
        if (weights * 2 > (double)l2 * (double)n) stream *= slabs * turns;
        double bring = shared ? convert / threads + 6000 : convert * (1 + halo) * turns / (double)m;
        double reading = shared ? a_bytes / (double)m * turns / 12 : across(c, m, n) * turns;
        double arithmetic = all * share;
        double longer = arithmetic > stream ? arithmetic : stream, shorter = arithmetic + stream - longer;
        double cycles = longer + shorter / 4 + bring + reading + part;
        if (best == 0 || cycles < best * 0.999)
          best = cycles, c->m_tasks = m, c->n_tasks = n, c->shared = shared, c->slab = slab;
      }
    }
}

/* Where the buffer and two panels of weights do not fit into L2: chunks of K, as long as the sums that wait
 * are few. Not where sums never leave registers: they would be more traffic than rows read again. */
static void plan_chunks(hn_bf16_conv *c, const hn_bf16_ops *o, size_t l2) {
  const int64_t blocks =
      c->shared ? hn_div_up(c->n_blocks, c->m_tasks) : hn_min(c->slab, hn_div_up(c->n_blocks, c->m_tasks));
  const int64_t panel = HN_BF16_PANEL * c->steps * HN_BF16_STEP * 2 * c->parts;
  const int64_t held = blocks * c->block * position_bytes(c) + 2 * panel;
  /* Of three parts, the weights that become them share L2, too. */
  const int64_t count = hn_div_up(held, (int64_t)(l2 * (c->parts == 3 ? 7 : 14) / 20)),
                sums = blocks * hn_div_up(c->n_panels, c->n_tasks);
  c->chunk = c->steps, c->sums = 0;
  if ((o->fused && c->parts == 1) || c->blocks_outside || c->fold || count < 2 ||
      sums * HN_BF16_ROWS * HN_BF16_PANEL * 4 > 4 * (int64_t)l2)
    return;
  c->chunk = hn_max(hn_div_up(c->steps, count), 1);
  c->sums = sums;
}

/* Pixels are positions, and lie as tiles are read. */
static bool reads_direct(const hn_bf16_conv *c) {
  bool one = c->narrow_in && c->parts == 1 && c->cin % HN_BF16_STEP == 0;
  for (int i = 0; i < 3; i++)
    one = one && c->kernel[i] == 1 && c->stride[i] == 1 && c->pad[i] == 0 && c->in[i] == c->out[i] &&
          c->q[i] == c->out[i];
  return one && c->in_batch == c->in[0] * c->in[1] * c->in[2] * c->in_pitch;
}

bool hn_bf16_plan(hn_bf16_conv *c, const hn_bf16_ops *o, uint32_t threads, size_t l1, size_t l2,
                  const char **why) {
  (void)l1;
  if (c->parts > o->parts) return *why = "this tier has no product of split f32", false;
  if (c->batch < 1 || c->groups < 1 || c->cin < 1 || c->cout < 1) return *why = "an empty tensor", false;
  for (int i = 0; i < 3; i++)
    if (c->in[i] < 1 || c->out[i] < 1) return *why = "an empty tensor", false;
  const int64_t run = c->kernel[2] * c->cin;
  const int64_t padded = hn_fill_up(c->cin, HN_BF16_STEP);
  c->fold = c->kernel[2] > 1 && c->dilation[2] == 1 && c->groups == 1 && c->in_pitch == c->cin &&
            hn_fill_up(run, HN_BF16_STEP) < c->kernel[2] * padded;
  if (c->groups > 1 && c->cin < 16) return *why = "groups of less than 16 channels", false;
  if (!geometry(c, why)) return false;
  c->c_steps = hn_div_up(c->fold ? run : c->cin, HN_BF16_STEP);
  c->direct = reads_direct(c);
  c->size = c->direct ? c->in_pitch : c->fold ? c->stride[2] * c->cin : HN_BF16_STEP * c->parts;
  c->steps = c->c_steps * c->kernel[0] * c->kernel[1] * (c->fold ? 1 : c->kernel[2]);
  if (c->parts == 3 && c->steps > INT32_MAX / (HN_BF16_STEP * HN_BF16_PANEL)) /* as kernels count */
    return *why = "too long a sum", false;
  c->short_from = c->steps, c->short_pairs = 0;
  if (!c->fold || c->c_steps == 1) {
    c->short_from = c->steps / c->c_steps * (c->c_steps - 1);
    c->short_pairs = hn_bf16_short_pairs(c->fold ? run : c->cin);
  }
  if (c->fold) c->reach += hn_div_up(c->c_steps * HN_BF16_STEP, c->size);
  /* Row tiles of one height, as full as can be. */
  c->rows = hn_div_up(c->positions, hn_div_up(c->positions, o->rows));
  c->block = c->rows * o->row_tiles;
  c->n_blocks = hn_div_up(c->positions, c->block);
  c->n_panels = hn_div_up(c->cout, HN_BF16_PANEL);
  plan_tasks(c, o, threads, l2);
  if (c->direct) {
    c->slab = hn_div_up(c->n_blocks, c->m_tasks);
    c->step_values = HN_BF16_STEP, c->lo = 0;
    c->buffer = (c->block * c->cin + 63) / 64 * 64;
    c->blocks_outside = weights_stay(c, c->n_tasks, l2);
    plan_chunks(c, o, l2);
    return true;
  }
  int64_t held = (c->shared ? c->n_blocks : c->slab) * c->block + c->reach;
  /* An odd number of cache lines between steps, so that they spread over the sets of L1. */
  c->step_values = (held * c->size + 31) / 32 * 32;
  if (c->step_values / 32 % 2 == 0) c->step_values += 32;
  int64_t plane = c->step_values * (c->fold ? 1 : c->c_steps);
  c->lo = c->fold ? plane * c->n_planes : HN_BF16_STEP;
  c->buffer = (plane * c->n_planes * (c->fold ? c->parts : 1) + 63) / 64 * 64;
  if (c->buffer * c->groups >= (int64_t)1 << 30) return *why = "too large a buffer", false;
  /* Three parts of a shared buffer and of a task's weights would push each other out of L2. */
  c->blocks_outside = weights_stay(c, c->n_tasks, l2) && !(c->parts == 3 && c->shared);
  plan_chunks(c, o, l2);
  if (c->parts == 3)
    c->parted = (int64_t)hn_bf16_parted(
        (size_t)(c->blocks_outside ? hn_div_up(c->n_panels, c->n_tasks) * HN_BF16_PANEL : 2 * HN_BF16_PANEL),
        (size_t)c->chunk, 3);
  if (c->coded) c->wide = c->chunk * HN_BF16_STEP * HN_BF16_PANEL;
  return true;
}

/* In cycles, fitted to the steps of some twenty networks (hone tune; docs/log/perf-log-cpu-narrow.md) and, of
 * three parts, to steps of the zoo's networks, of vectors, to steps of ResNet-50 and BERT (bf16) and to
 * convolutions and products of check_kernels --bench (f16): a pair of tiles for each of its `rows` a product
 * and step, a block's call, an element of a part that is brought, an element that is stored. */
typedef struct cycles_of {
  double tiles, call, brought, stored;
} cycles_of;

static const cycles_of cycles_tiles = {1.47, 290, 0.4, 0.74}, cycles_triple = {1.25, 290, 0.45, 1.15},
                       cycles_vectors = {1.04, 60, 0.3, 0.4}, cycles_f16 = {1, 160, 0.4, 0.25};

/* Of the thread that has most to do; where threads share what they bring, they wait for each other. */
double hn_bf16_seconds(const hn_bf16_conv *c, const hn_bf16_ops *o, const hone_machine *machine) {
  const hn_gemm_ops *f32 = hn_gemm_find(hn_isa_of(machine->isa));
  const double threads = machine->threads ? machine->threads : 1, parts = (double)c->parts,
               products = hn_bf16_products((uint32_t)c->parts);
  const double turns = (double)hn_div_up(c->m_tasks * c->n_tasks * c->groups, (int64_t)threads);
  const int64_t blocks = hn_div_up(c->n_blocks, c->m_tasks), panels = hn_div_up(c->n_panels, c->n_tasks);
  const double calls = turns * (double)(blocks * panels);
  double steps = (double)c->steps;
  if (c->short_pairs && !o->f16 && !(o->x1_rate > 0))
    steps -= (double)(c->steps - c->short_from) * (1 - (double)c->short_pairs / 16);
  const double tiles = calls * (double)c->block * 2 * steps * products * 16 / hn_bf16_rate(o);
  const double column = (double)c->steps * HN_BF16_STEP * HN_BF16_PANEL,
               column_bytes = c->coded ? column * (double)c->coded / 8 : column * (parts > 1 ? 4 : 2);
  const double weights = hn_weights_cycles(turns * (double)panels * column_bytes,
                                           (double)(c->groups * c->n_panels) * column_bytes, f32, machine);
  const double rows = (double)(c->m_tasks * c->groups);
  const double sharers = c->shared || rows > threads ? threads : rows;
  /* A slab begins with what its last taps reach beyond it: of kernels along depth, whole slices. */
  const int64_t slabs = c->shared || c->direct ? 1 : c->m_tasks * hn_div_up(blocks, c->slab);
  const double positions = (double)c->positions + (double)slabs * (double)c->reach;
  const double brought = positions * (double)(c->n_planes * c->cin * c->groups) * parts / sharers;
  const double stored =
      (double)(c->batch * c->out[0] * c->out[1] * c->out[2] * c->cout * c->groups) / threads;
  const cycles_of *of = o->f16           ? &cycles_f16
                        : c->parts == 3  ? &cycles_triple
                        : o->x1_rate > 0 ? &cycles_tiles
                                         : &cycles_vectors;
  const double bring = c->direct ? 0 : c->narrow_in ? of->brought / 2 : of->brought;
  const double store = c->narrow_out ? of->stored * 0.6 : of->stored;
  double part = c->parts < 3 ? 0 : turns * (double)panels * column * PARTING_CYCLES;
  if (!c->blocks_outside && !c->shared) part *= (double)hn_div_up(blocks, c->slab);
  const double widen = c->coded ? part / PARTING_CYCLES * WIDENING_CYCLES : 0;
  if (!c->blocks_outside) part = parting_shown(part, of->tiles * tiles);
  part += widen;
  const double touched = 4 * ((double)(c->positions * c->n_planes * c->cin * c->groups) + stored * threads);
  if (c->parts == 3 && touched > (double)machine->l2 * threads) part += FAR_CYCLES * touched / threads;
  const double cycles =
      part + of->tiles * tiles + weights + of->call * calls + bring * brought + store * stored;
  return cycles / hn_core_hertz(f32, machine) + 1.5e-6 + (c->shared ? 10e-6 : 0);
}

size_t hn_bf16_weights(const hn_bf16_conv *c) {
  return hn_bf16_packed((size_t)c->cout, (size_t)c->steps, (uint32_t)c->parts);
}

size_t hn_bf16_workspace(const hn_bf16_conv *c, uint32_t threads) {
  return (size_t)c->buffer * 2 * (c->shared ? (size_t)c->groups : threads) +
         (size_t)c->sums * threads * HN_BF16_ROWS * HN_BF16_PANEL * sizeof(float) +
         (size_t)c->parted * threads * 2 + (size_t)c->wide * threads * sizeof(float) + 64;
}

/* Which of the planes that exist has remainder f in dimension i. */
static int64_t phase_index(const hn_bf16_conv *c, int i, int64_t f) {
  return __builtin_popcount(c->phases[i] & ((1u << f) - 1));
}

static int64_t plane_of(const hn_bf16_conv *c, int64_t z, int64_t y, int64_t x) {
  return (phase_index(c, 0, z % c->stride[0]) * __builtin_popcount(c->phases[1]) +
          phase_index(c, 1, y % c->stride[1])) *
             __builtin_popcount(c->phases[2]) +
         (c->fold ? 0 : phase_index(c, 2, x % c->stride[2]));
}

/* Steps in the order of K: channels outside, so that the taps of 32 channels meet pixels that are still in
 * L1. */
void hn_bf16_steps(const hn_bf16_conv *c, int32_t *step) {
  const int64_t across = c->fold ? 1 : c->kernel[2];
  const int64_t slice = c->q[1] * c->q[2];
  const int64_t outer = c->fold ? 1 : c->c_steps, inner = c->fold ? c->c_steps : 1;
  for (int64_t b = 0; b < outer; b++)
    for (int64_t tz = 0; tz < c->kernel[0]; tz++)
      for (int64_t ty = 0; ty < c->kernel[1]; ty++)
        for (int64_t tx = 0; tx < across; tx++)
          for (int64_t j = 0; j < inner; j++) {
            int64_t z = tz * c->dilation[0], y = ty * c->dilation[1], x = tx * c->dilation[2];
            int64_t at = z / c->stride[0] * slice + y / c->stride[1] * c->q[2] + x / c->stride[2];
            *step++ = (int32_t)((plane_of(c, z, y, x) * outer + b) * c->step_values + at * c->size +
                                j * HN_BF16_STEP);
          }
}

void hn_bf16_places(const hn_bf16_conv *c, int64_t *at) {
  const int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
  const int64_t across = c->fold ? 1 : c->kernel[2];
  const int64_t outer = c->fold ? 1 : c->c_steps, inner = c->fold ? c->c_steps : 1;
  for (int64_t b = 0; b < outer; b++)
    for (int64_t line = 0; line < c->kernel[0] * c->kernel[1]; line++)
      for (int64_t tx = 0; tx < across; tx++)
        for (int64_t j = 0; j < inner; j++)
          for (int64_t k = 0; k < HN_BF16_STEP; k++) {
            int64_t i = (c->fold ? j : b) * HN_BF16_STEP + k, channel = c->fold ? i % c->cin : i,
                    tap = line * c->kernel[2] + (c->fold ? i / c->cin : tx);
            bool live = i < (c->fold ? c->kernel[2] * c->cin : c->cin);
            *at++ = live ? channel * taps + tap : -1;
          }
}
