#include "backends/cuda/wgmma/wgmma_chain.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/product/conv_chain_args.h"
#include "backends/cuda/wgmma/tensor_map.h"
#include "backends/cuda/wgmma/wgmma_problem.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/mem.h"

enum {
  BLOCK = HN_WGMMA_BLOCK_BYTES / 2,
  CHUNK = 64,            /* columns of the second product that are made at a time */
  MOST_MIDDLE = 256,     /* channels between the products: what a product of a warpgroup has columns */
  MOST_SUMS = 256,       /* of wm x columns: more do not fit into the registers */
  MOST_SUMS_THREE = 128, /* with three warpgroups */
  LEAST_STAGES = 3,
  MOST_STAGES = 8 /* of a ring */
};

typedef struct chain {
  bool two; /* else the last product alone: its rows are read as they are */
  const hone_step *first_step, *last_step;
  hn_wgmma_problem first, last;
  int64_t tiles;
  uint32_t middle; /* K of the last product, in whole 64s */
  uint32_t chunks;
  int staged; /* entry of the last epilogue that comes through shared memory: -1 for none */
  uint32_t stages, places, shared;
} chain;

typedef hn_wgmma_chain_config shape;
static uint32_t tile_rows(const shape *f) { return 64 * f->wm * f->groups; }

/* The rings with their barriers, and the epilogues' vectors, in `most` bytes. What is left of as many stages
 * as places are makes more of what it has room for. */
static void lay_out(chain *c, const shape *f, uint32_t most) {
  const uint32_t stage = c->middle * 128 + 2 * 8, place = tile_rows(f) * 128 + 3 * 8,
                 vectors =
                     hn_cuda_epilogue_vectors(c->last_step, c->last.p.bias) * c->chunks * CHUNK * 4 +
                     (c->two ? hn_cuda_epilogue_vectors(c->first_step, c->first.p.bias) * c->middle * 4 : 0);
  c->stages = c->places = 0, c->shared = vectors;
  if (vectors > most) return;
  c->stages = c->places = hn_min((most - vectors) / (stage + place), MOST_STAGES);
  const uint32_t left = most - vectors - c->stages * (stage + place);
  c->places = hn_min(c->places + left / place, MOST_STAGES);
  c->stages = hn_min(c->stages + left % place / stage, MOST_STAGES);
  c->shared += c->stages * stage + c->places * place;
}

static bool read_parts(const hone_step *s, const hone_machine *m, chain *c, hone_reason *why) {
  c->two = s->n_parts > 0;
  if (!c->two) {
    c->last_step = s;
    return hn_wgmma_read(s, m, &c->last, why);
  }
  if (s->n_parts != 2)
    return hn_refuse(why,
                     "%u parts: a first 1x1 would be multiplied again by each tile that reads its pixels",
                     s->n_parts);
  if (s->n_inputs > HN_CUDA_PART_INPUTS) return hn_refuse(why, "more than %d inputs", HN_CUDA_PART_INPUTS);
  c->first_step = s->part[0].step, c->last_step = s->part[1].step;
  if (!hn_wgmma_read(c->first_step, m, &c->first, why) || !hn_wgmma_read(c->last_step, m, &c->last, why))
    return false;
  if (c->first.mode != HN_WGMMA_IM2COL)
    return hn_refuse(why, "the copy engine does not gather the first convolution's pixels");
  if (c->last.p.a_type != c->first.p.a_type || c->first.p.out_type != c->first.p.a_type)
    return hn_refuse(why, "types differ");
  return hn_cuda_epilogue_inside(c->first_step, why);
}

static bool describe(const hone_step *s, const hone_machine *m, const shape *f, chain *c, hone_reason *why) {
  memset(c, 0, sizeof *c);
  if (!read_parts(s, m, c, why)) return false;
  if (c->last.mode != HN_WGMMA_MATRIX)
    return hn_refuse(why, "the last convolution is not 1x1 on every pixel");
  if (c->last.p.out_type != c->last.p.a_type) return hn_refuse(why, "types differ");
  c->middle = (uint32_t)hn_round_up(c->two ? c->first.p.args.n : c->last.p.args.tap, 64);
  if (c->middle > MOST_MIDDLE)
    return hn_refuse(why, "more than %d channels %s", MOST_MIDDLE,
                     c->two ? "between the convolutions" : "of the input");
  if (c->middle * f->wm > (f->groups == 2 ? MOST_SUMS : MOST_SUMS_THREE))
    return hn_refuse(why, "%u rows of %u channels do not fit into registers", tile_rows(f), c->middle);
  c->chunks = hn_div_up(c->last.columns, CHUNK);
  c->tiles = hn_div_up(c->last.p.args.m, tile_rows(f));
  c->staged = hn_cuda_epilogue_staged(c->last_step);
  lay_out(c, f, (uint32_t)m->shared_bytes);
  /* One is multiplied with, the next one's product begins, the third is on its way. */
  if (c->stages < LEAST_STAGES) return hn_refuse(why, "too little shared memory");
  return true;
}

bool hn_wgmma_chain_accepts(const hone_step *s, const hone_machine *m, const hn_wgmma_chain_config *config,
                            hone_reason *why) {
  chain c;
  return describe(s, m, config, &c, why);
}

/* What a tile's seconds are made of. */
typedef struct times {
  double first; /* of the first product, or of the rows as they are */
  double chunk; /* of one chunk of the last: its product or what it draws from L2, then its epilogue */
} times;

/* Seconds of a value on its way out; warpgroups with more rows wait longer for each other. */
static double leaves(const chain *c, const shape *f) {
  if (c->two) return f->wm == 1 ? 18e-12 : 26e-12;
  return f->wm == 1 ? 22e-12 : c->staged >= 0 ? 35e-12 : 27e-12;
}

/* Fitted to 61 measurements (23 of chains) of three networks on two H200s (docs/log/perf-log-hopper.md). */
static times times_of(const chain *c, const hone_machine *m, const shape *f) {
  const double sms = m->processors ? m->processors : 132, half = m->half_flops > 0 ? m->half_flops : 1e15;
  const double l2 = 1.4 * (m->cache_bytes > 0 ? m->cache_bytes : 8.3e12) / sms, rows = tile_rows(f);
  const double busy = !c->two ? 0.57 : (double)c->tiles > sms ? 0.78 : 0.82;
  const double multiply = 2 * rows * c->middle * BLOCK / (busy * half / sms),
               draw = (rows * (c->two || c->staged >= 0 ? 2 : 1) + c->middle) * 128 / l2,
               leave = rows * CHUNK * leaves(c, f);
  return (times){c->two ? multiply * c->first.k_blocks : rows * c->middle * 2 / (1.15 * l2),
                 fmax(multiply, draw) + leave};
}

/* Products and memory hinder each other where both take long. */
static double together(double products, double memory) {
  return cbrt(products * products * products + memory * memory * memory);
}

double hn_wgmma_chain_cost(const hone_step *s, const hone_machine *m, const hn_wgmma_chain_config *config) {
  chain c;
  if (!describe(s, m, config, &c, NULL)) return HN_REFUSED_SECONDS;
  const times t = times_of(&c, m, config);
  const double dram = m->dram_bytes > 0 ? m->dram_bytes : 4.9e12, last = c.chunks * t.chunk;
  const int64_t sms = m->processors ? m->processors : 132;
  const double rounds = (double)hn_div_up(c.tiles, sms);
  if (!c.two) {
    const double written = (double)c.last.p.args.m * c.last.columns * 2,
                 share = 0.93 - 0.16 * fmin(written / c.last.p.bytes, 1);
    return together(rounds * (t.first + last), c.last.p.bytes / (share * dram)) + m->launch_s;
  }
  const double bytes = c.first.p.bytes - hn_wgmma_unread(c.first_step, &c.first) -
                       (double)hone_desc_bytes(&c.first_step->output[0].desc) + c.last.p.bytes -
                       (double)hone_desc_bytes(&c.last_step->input[0].desc);
  return together(rounds * (t.first + last), bytes / (0.9 * dram)) + 1.25e-6 + m->launch_s;
}

/* ------------------------------------------------------------------ weights */

static size_t first_bytes(const chain *c) {
  return c->two ? (size_t)c->first.k_blocks * c->middle * BLOCK * 2 : 0;
}
static size_t piece_bytes(const chain *c) { return (size_t)c->middle * CHUNK * 2; }

hone_status hn_wgmma_chain_need(const hone_step *s, const hone_machine *m,
                                const hn_wgmma_chain_config *config, hone_tactic_need *need,
                                hone_error *error) {
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, config, &c, &why)) return hn_not_described(s, &why, error);
  need->blob_bytes = first_bytes(&c) + c.chunks * piece_bytes(&c);
  need->packed = c.two ? 1u << s->part[0].input[1] | 1u << s->part[1].input[1] : 1u << 1;
  need->bytewise = need->packed;
  return HONE_OK;
}

hone_status hn_wgmma_chain_prepack(const hone_step *s, const hone_machine *m,
                                   const hn_wgmma_chain_config *config, void *blob, hone_error *error) {
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, config, &c, &why)) return hn_not_described(s, &why, error);
  if (c.two) hn_wgmma_pack(c.first_step, &c.first, c.middle / 8, blob);
  hn_wgmma_pack_pieces(c.last_step, &c.last, CHUNK, c.middle / BLOCK, (char *)blob + first_bytes(&c));
  return HONE_OK;
}

/* ------------------------------------------------------------------ run */

static hone_status write_prefix(const chain *c, const shape *f, hn_str *text, hone_error *error) {
  const hn_wgmma_problem *a = c->two ? &c->first : &c->last;
  const char *type = hn_cuda_type(a->p.a_type);
  hn_str_printf(
      text,
      "#define HN_T %s\n#define HN_OUT %s\n#define HN_WM %u\n#define HN_BN %u\n#define HN_ALTERNATE 0\n"
      "#define HN_SPLIT 0\n#define HN_GROUPS %u\n#define HN_STAGES %u\n#define HN_PLACES %u\n#define HN_A "
      "%d\n"
      "#define HN_UNIT %u\n#define HN_STAGED %d\n#define HN_FIRST %d\n#define HN_FAST_MATH 1\n",
      type, type, f->wm, c->middle, f->groups, c->stages, c->places, (int)a->mode, a->unit, c->staged >= 0,
      c->two);
  hone_status st = hn_cuda_epilogue_fragments(c->last_step, c->last.p.bias, c->staged, text, error);
  return st || !c->two ? st : hn_cuda_epilogue_inner(c->first_step, c->first.p.bias, text, error);
}

static hone_status make_maps(const hone_step_run *run, const chain *c, const shape *f, const void *x,
                             const void *added, hn_conv_wgmma_args *a, hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hn_product_args *g = &c->last.p.args;
  const hone_dtype type = c->last.p.out_type;
  hone_status st = hn_wgmma_map_a(queue, c->two ? &c->first : &c->last, x, tile_rows(f), &a->a, error);
  if (!st)
    st = hn_cuda_map_rows(queue, &a->out, type, run->out[0], c->last.columns, g->m, g->out_pitch, CHUNK,
                          tile_rows(f), error);
  if (!st && c->staged >= 0)
    st = hn_cuda_map_rows(queue, &a->staged, type, added, c->last.columns, g->m, g->out_pitch, CHUNK,
                          tile_rows(f), error);
  return st;
}

hone_status hn_wgmma_chain_run(const hone_step_run *run, const hn_wgmma_chain_config *config,
                               hone_error *error) {
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  const hone_machine *m = hn_cuda_machine(queue);
  const hone_step *s = run->step;
  chain c;
  hone_reason why = {""};
  if (!describe(s, m, config, &c, &why)) return hn_not_described(s, &why, error);
  hn_cuda_part first, last;
  if (c.two) hn_cuda_part_run(run, 0, &first), hn_cuda_part_run(run, 1, &last);
  const hone_step_run *last_run = c.two ? &last.run : run;
  const void *x = c.two ? first.in[0] : run->in[0];
  if (!hn_product_aligned(x) || !hn_product_aligned(run->out[0]))
    return hn_fail(error, HONE_ERROR_INTERNAL, "%s: a tensor lies at an odd address", s->anchor);
  const void *added = c.staged >= 0 ? last_run->in[c.last_step->epilogue[c.staged].input] : NULL;
  if (!hn_product_aligned(added)) c.staged = -1;
  hn_conv_chain_args args;
  memset(&args, 0, sizeof args);
  hn_wgmma_args(c.two ? &c.first : &c.last, x, &args.conv);
  args.conv.weights = run->blob, args.last = (const char *)run->blob + first_bytes(&c);
  args.conv.n8 = (i32)(c.middle / 8), args.conv.n_tiles = 1, args.conv.tiles = (i32)c.tiles;
  args.chunks = (i32)c.chunks;
  args.conv.y = run->out[0], args.conv.y_pixel = (i32)c.last.p.args.out_pitch;
  args.conv.columns = (i32)c.last.columns;
  if (c.two) hn_cuda_epilogue_bind(&first.run, c.first.p.bias, &args.inner);
  hn_cuda_epilogue_bind(last_run, c.last.p.bias, &args.conv.epilogue);
  hone_status st = make_maps(run, &c, config, x, added, &args.conv, error);
  hn_str text = {0};
  if (!st) st = write_prefix(&c, config, &text, error);
  const hn_cuda_kernel kernel = {"conv_chain", text.ptr, "conv_chain"};
  const int64_t blocks = c.tiles < m->processors ? c.tiles : m->processors;
  const hn_cuda_shape shape = {.grid = {(uint32_t)blocks, 1, 1},
                               .threads = 128 * (1 + config->groups),
                               .shared = c.shared,
                               .overlap = true};
  if (!st) st = hn_cuda_launch(queue, &kernel, &shape, &args, sizeof args, error);
  hn_str_free(&text);
  return st;
}
