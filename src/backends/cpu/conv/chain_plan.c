#include "backends/cpu/conv/chain_plan.h"

#include <math.h>

bool hn_chain_pairs(const hn_chain *c, const hn_bf16_ops *bf16, const hn_depthwise_bf16_ops *depthwise,
                    bool inner_posts) {
  return c->parts == 1 && !c->f16 && bf16 && bf16->fused && depthwise && c->project && !inner_posts &&
         (c->expand || c->narrow_in);
}

/* An image row under a window is as many steps as it needs, all of one width: no window has more than 128
 * values. */
static void window_steps(hn_chain *c) {
  const int64_t values = c->e_kernel[1] * c->cin;
  c->e_steps = hn_div_up(values, HN_BF16_STEP);
  c->e_width = hn_div_up(hn_div_up(values, c->e_steps), 2) * 2;
}

int64_t hn_chain_window_steps(const hn_chain *c) { return c->e_kernel[0] * c->e_steps; }

void hn_chain_window_places(const hn_chain *c, int64_t *at) {
  const int64_t values = c->e_kernel[1] * c->cin, taps = c->e_kernel[0] * c->e_kernel[1];
  for (int64_t v = 0; v < c->e_kernel[0]; v++)
    for (int64_t i = 0; i < c->e_steps; i++)
      for (int64_t k = 0; k < HN_BF16_STEP; k++) {
        const int64_t value = i * c->e_width + k;
        const bool there = k < c->e_width && value < values;
        *at++ = there ? value % c->cin * taps + v * c->e_kernel[1] + value / c->cin : -1;
      }
}

void hn_chain_divide(hn_chain *c, const hn_gemm_ops *o, int64_t bands, int64_t splits, size_t l2) {
  c->bands = bands, c->splits = splits;
  c->width = c->parts ? HN_BF16_PANEL : o->nr;
  c->panels = hn_div_up(c->hidden, c->width);
  c->e_parts = !c->expand || (c->window && !c->paired) || c->e_whole ? 0 : c->parts;
  c->p_parts = !c->project || c->p_whole ? 0 : c->parts;
  c->stripe = hn_max(4096, (int64_t)(l2 / 4 / 4) / 1024 * 1024);
  c->w_tap = hn_fill_up(c->hidden, c->paired ? HN_DEPTHWISE_PANEL : 16);
  int64_t rows = hn_div_up(c->out[0], c->bands), panels = hn_div_up(c->panels, c->splits);
  int64_t weights = (c->expand ? hn_chain_e_values(c) : 0) + (c->project ? c->cout : 0);
  /* Few weights stay in L2 for all groups; a group of some fifty pixels reads them seldom enough. */
  bool one_group = weights * panels * c->width * 4 > (int64_t)l2 / 4;
  /* Those of three parts rather come at an even pace, each panel during the products of the one before it. */
  if (c->parts == 3) one_group = weights * panels * c->width * 6 > (int64_t)l2 / 8;
  c->group = one_group ? rows : hn_min(rows, hn_div_up(4 * o->mr, hn_max(c->out[1], 1)));
  if (c->group < 1) c->group = 1;
  c->groups = hn_div_up(rows, c->group);
  c->block = c->groups > 1 || c->p_parts ? panels : hn_min(panels, hn_max(128 / c->width, 1));
  c->slots = c->groups > 1 || (c->paired && c->window) ? panels : 1;
  int64_t reach = (c->kernel[0] - 1) * c->dilation[0] + 1;
  c->ring_rows = hn_min((c->group - 1) * c->stride[0] + reach, c->in[0]);
  int64_t row =
      hn_max(c->pad[1] + c->in[1], (c->out[1] - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1);
  c->ring_row = c->expand || c->narrow_in ? row * c->width : 0;
  c->ring_panel = c->ring_rows * c->ring_row;
  /* An odd number of cache lines spreads pixels over the sets of L1. */
  c->middle_pitch = c->project ? (c->block * c->width + 15) / 32 * 32 + 16 : 0;
  c->e_row = c->window ? ((c->in[1] - 1) * c->e_stride[1] + c->e_kernel[1]) * c->cin : 0;
  if (c->paired && c->window) {
    /* The last window's steps may reach beyond its values. */
    window_steps(c);
    c->e_row += c->e_steps * c->e_width - c->e_kernel[1] * c->cin;
  }
  if (!c->parts) return;
  /* The last row tile may read beyond the last pixel. */
  c->unit = HN_BF16_STEP * c->parts;
  c->e_block = c->e_parts && !c->window ? (c->ring_rows * c->in[1] + HN_BF16_ROWS) * c->unit : 0;
  c->p_block = c->p_parts ? (c->group * c->out[1] + HN_BF16_ROWS) * c->unit : 0;
  if (c->p_parts || !c->project) c->middle_pitch = !c->paired && (c->project || c->narrow_out) ? c->width : 0;
  c->direct = c->paired && c->expand && !c->window && c->narrow_in && c->cin % 2 == 0 &&
              c->x.row == c->in[1] * c->x.pixel;
  if (c->direct) c->e_block = 0;
}

/* Floats that a thread works in. */
static size_t touched(const hn_chain *c) {
  return (size_t)(hn_chain_ring_floats(c) + hn_chain_row_floats(c) + hn_chain_sum_floats(c) +
                  hn_chain_e_floats(c) + hn_chain_p_floats(c) +
                  (c->p_parts == 3 ? 1 : c->group) * c->out[1] * c->middle_pitch);
}

/* Steps share their scratch memory. A thread's part lies at the same place for all but the largest steps: a
 * line that another core wrote last costs thirty times as much to write as one that is in the own cache. */
size_t hn_chain_scratch(const hn_chain *c) { return (touched(c) / c->stripe + 1) * (size_t)c->stripe; }

size_t hn_chain_partials(const hn_chain *c) {
  return c->splits > 1 ? (size_t)(c->splits * c->batch * c->out[0] * c->out[1] * c->cout) : 0;
}

/* Cycles of a product of pixels x channels with a matrix of `columns` from bf16 parts: tiles of 16 x 16
 * results and 32 channels take 16 cycles a product (at a rate of 16), each result is stored and each operand
 * split once. */
static double predict_parts(const hn_chain *c, const hn_bf16_ops *b, double pixels, double channels,
                            int64_t columns) {
  const bool vectors = !b->f16 && !(b->x1_rate > 0);
  double products = (c->parts > 1 ? 3 : 1) * 16 / hn_bf16_rate(b),
         steps = vectors ? ceil(channels / 2) / 16 : (double)hn_chain_steps_of((int64_t)channels);
  double panels = (double)hn_div_up(columns, HN_BF16_PANEL);
  /* Measured over the chains of some twenty networks, on tiles all of it takes 1.4 times as long. */
  return (b->f16    ? 1
          : vectors ? 1.05
                    : 1.4) *
         pixels * (panels * (2 * products * steps + 9) + 10.0 * (double)c->parts * steps);
}

/* The same of three parts, fitted to the chains of MobileNetV2: six products of 16 rows of a tile, which take
 * that long with fewer rows, too. `most` pixels are multiplied at a time. */
static double predict_triple(double pixels, double channels, int64_t columns, int64_t most) {
  const double steps = (double)hn_chain_steps_of((int64_t)channels),
               panels = (double)hn_div_up(columns, HN_BF16_PANEL);
  const double rows = most > 0 ? pixels * (double)hn_fill_up(most, 16) / (double)most : pixels;
  return 1.22 *
         (rows * panels * (13.7 * steps + 19) + pixels * 18 * steps + 0.7 * channels * (double)columns);
}

static double predict_products(const hn_chain *c, const hn_bf16_ops *b, double pixels, double channels,
                               int64_t columns, int64_t most) {
  return c->parts == 3 ? predict_triple(pixels, channels, columns, most)
                       : predict_parts(c, b, pixels, channels, columns);
}

/* The same of a paired chain: a product is one instruction a vector and pair of values, and the way of a
 * vector of sums to bf16 takes 1.5 cycles. */
static double predict_pairs(const hn_bf16_ops *b, double pixels, double pairs, int64_t columns) {
  return pixels * (double)hn_div_up(columns, 16) * (pairs / hn_bf16_rate(b) + 1.5);
}

/* Cycles of the busiest thread. A vector unit of `lanes` does two multiply-adds a cycle. */
static double predict(const hn_chain *c, const hn_gemm_ops *o, const hn_bf16_ops *b, uint32_t threads,
                      size_t l2) {
  double lanes = o->vw, rows = (double)hn_div_up(c->out[0], c->bands), lo = 0, hi = 0;
  int64_t y = c->bands > 1 ? (c->bands / 2) * c->out[0] / c->bands : 0, from, to;
  hn_chain_rows_under(c, y, y + (int64_t)rows, &from, &to);
  lo = (double)from, hi = (double)to;
  double channels = (double)(hn_div_up(c->panels, c->splits) * c->width), pixels = rows * (double)c->out[1];
  /* A tile has fixed costs of about 60 cycles (20 for each vector row pair) beside its k steps. */
  double expand =
      c->expand ? (hi - lo) * (double)c->in[1] * channels * ((double)hn_chain_e_values(c) + 5) : 0;
  double middle = pixels * channels * (double)(c->kernel[0] * c->kernel[1] + 4);
  double columns = (double)hn_fill_up(c->cout, o->vw);
  double project =
      c->project ? pixels * columns * (channels + 5.0 * (double)hn_div_up(c->panels, c->block)) : 0;
  double cycles = (expand + middle + project) / (2 * lanes) / 0.88;
  if (c->paired) {
    const double e_pairs =
        c->window ? (double)(hn_chain_window_steps(c) * c->e_width) / 2 : ceil((double)c->cin / 2);
    cycles = pixels * channels / lanes * ((double)(c->kernel[0] * c->kernel[1]) / 2 + 1);
    if (c->expand) cycles += predict_pairs(b, (hi - lo) * (double)c->in[1], e_pairs, c->hidden);
    cycles += predict_pairs(b, pixels, ceil(channels / 2), c->cout);
    cycles /= 0.9;
  } else if (c->parts) {
    cycles = (middle + (c->e_parts ? 0 : expand) + (c->p_parts ? 0 : project)) / (2 * lanes) / 0.88;
    if (c->e_parts)
      cycles += predict_products(c, b, (hi - lo) * (double)c->in[1], (double)c->cin, (int64_t)channels,
                                 c->group * c->stride[0] * c->in[1]);
    if (c->p_parts) cycles += predict_products(c, b, pixels, channels, c->cout, c->group * c->out[1]);
  }
  /* Weights come from L3 or memory at about 8 bytes a cycle, half of that hidden behind arithmetic. */
  const bool e_f32 = c->expand && !(c->parts == 3 && c->e_parts),
             p_f32 = c->project && !(c->parts == 3 && c->p_parts);
  double weights = ((e_f32 ? (double)hn_chain_e_values(c) : 0) + (p_f32 ? (double)c->cout : 0)) * channels *
                   (c->paired ? 2 : 4);
  cycles += weights / 16;
  double input = (hi - lo) * (double)(c->in[1] * c->cin) * (c->narrow_in ? 2 : 4),
         output = pixels * (double)c->cout * (c->narrow_out ? 2 : 4);
  cycles += (input + output) / 16;
  cycles *= (double)hn_div_up(c->batch * c->bands * c->splits, threads);
  if (touched(c) * 4 > l2 / 4 * 3) cycles *= 2;
  /* Partial sums are written by one core and read by another, line by line: measured, about a byte a cycle.
   */
  if (c->splits > 1)
    cycles += 3000 + (double)(c->batch * c->out[0] * c->out[1] * c->cout * c->splits) * 4 / threads;
  return cycles;
}

void hn_chain_plan(hn_chain *c, const hn_gemm_ops *o, const hn_bf16_ops *bf16, uint32_t threads, size_t l2) {
  hn_chain best = *c;
  const bool f32 = !c->parts || c->parts == 3;
  const int64_t most = c->project && f32 ? hn_min(hn_div_up(c->hidden, o->nr), threads) : 1;
  best.cycles = 0;
  /* Of three parts: both convolutions, one of them. */
  for (int whole = 0; whole < (c->parts == 3 ? 3 : 1); whole++) {
    c->e_whole = whole == 1, c->p_whole = whole == 2;
    for (int64_t bands = 1; bands <= hn_min(c->out[0], 4 * (int64_t)threads); bands++)
      for (int64_t splits = 1; splits <= most; splits++) {
        if (splits > 1 && splits * bands * c->batch > 2 * (int64_t)threads) break;
        hn_chain_divide(c, o, bands, splits, l2);
        if (c->parts == 3 && !c->e_parts && !c->p_parts) continue;
        c->cycles = predict(c, o, bf16, threads, l2);
        if (best.cycles == 0 || c->cycles < best.cycles * 0.99) best = *c;
      }
  }
  *c = best;
}
