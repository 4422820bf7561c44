/* com.microsoft.GroupQueryAttention with a cache of floats: new keys and values go where they belong in the
 * cache that is handed on, which may be the one that comes, and attention reads them there. The lengths stay
 * on the device. f32 operands are rounded to tf32 where the plan allows it, else cut into two such parts. */
#include <math.h>
#include <string.h>

#include "backends/cuda/attention/attention_cost.h"
#include "backends/cuda/attention/cached_args.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"
#include "optimize/step/anchor.h"

enum { Q, K, V, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, POSITIONS, FURTHER, SINK };
enum { Y, PRESENT_KEY, PRESENT_VALUE };
enum { THREADS = 256, MOST_PARTS = 4, MOST_SPLITS = 64, LEAST_KEYS = 128 /* of a split */ };

typedef struct plan {
  hn_cached_place_args place; /* without addresses */
  hn_cached_attention_args attend;
  hone_dtype type;
  bool split3;                                 /* f32 as three products */
  uint32_t depth, warps, parts, keys, ring;    /* depth rounded up */
  uint32_t vectors;                            /* bytes that are copied together; 0: elements alone */
  int64_t tiles, new_elements, cache_elements; /* of Q, K and V; of both caches */
  size_t shared, q_bytes, arrived_bytes, parts_bytes;
} plan;

static bool fits(int64_t v) { return v >= 0 && v < 0x7fffffff; }

static bool has(const hone_step *s, uint32_t i) { return hn_cuda_has(s, i); }

static bool is(const hone_step_tensor *t, hone_dtype type) {
  return t->desc.dtype == type && t->desc.layout == HONE_LAYOUT_ROW_MAJOR && hone_desc_known(&t->desc);
}

static bool read_types(const hone_step *s, const hone_machine *m, plan *p, hone_reason *why) {
  static const uint32_t same[] = {Q, K, V, PAST_KEY, PAST_VALUE}, floats[] = {COS, SIN, SINK},
                        numbers[] = {LENGTHS, TOTAL};
  p->type = s->input[Q].desc.dtype;
  if (!hn_cuda_type(p->type)) return hn_refuse(why, "queries are not of a floating type");
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (has(s, same[i]) && !is(&s->input[same[i]], p->type))
      return hn_refuse(why, "input %u is not row-major %s of a known shape", same[i],
                       hone_dtype_name(p->type));
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    if (has(s, floats[i]) && (!hn_cuda_type(s->input[floats[i]].desc.dtype) ||
                              !is(&s->input[floats[i]], s->input[floats[i]].desc.dtype)))
      return hn_refuse(why, "input %u is not row-major floats of a known shape", floats[i]);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!is(&s->input[numbers[i]], HONE_DTYPE_I32)) return hn_refuse(why, "input %u is not i32", numbers[i]);
  if (has(s, POSITIONS) && !is(&s->input[POSITIONS], HONE_DTYPE_I64))
    return hn_refuse(why, "position_ids are not i64");
  if (has(s, COS) && has(s, SIN) && s->input[COS].desc.dtype != s->input[SIN].desc.dtype)
    return hn_refuse(why, "tables of two types");
  for (uint32_t i = Y; i <= PRESENT_VALUE; i++)
    if (!is(&s->output[i], p->type))
      return hn_refuse(why, "output %u is not row-major %s of a known shape", i, hone_dtype_name(p->type));
  if (p->type == HONE_DTYPE_F32 && s->math < HONE_MATH_F32)
    return hn_refuse(why, "the plan allows f32 products alone");
  p->split3 = p->type == HONE_DTYPE_F32 && s->math < HONE_MATH_TF32;
  return hn_cuda_tensor_cores(m, p->type, why);
}

/* Q, the rings of keys and values of all parts, in whose place results of parts meet. */
static size_t shared_of(const plan *p) {
  const size_t size = hone_dtype_size(p->type), chunk = 16 / size, rows = 16 * (size_t)p->warps,
               width = p->depth + chunk;
  const size_t ring = size * (rows * width + (size_t)p->parts * p->ring * p->keys * 2 * width),
               meet = p->parts * rows * (p->depth + 8 + 2) * sizeof(float);
  return ring > meet ? ring : meet;
}

/* Tiles of one token's heads are small: parts of a block divide the keys, and where blocks do not fill the
 * device several of them have parts of a tile's keys. */
static bool choose(plan *p, const hone_machine *m, hone_reason *why) {
  const hn_cached_sizes *z = &p->attend.z;
  const uint32_t rows = z->tokens * z->group, processors = m->processors ? m->processors : 1;
  p->warps = rows <= 16 ? 1 : rows <= 32 ? 2 : 4;
  p->attend.row_tiles = (rows + 16 * p->warps - 1) / (16 * p->warps);
  p->tiles = (int64_t)z->batch * z->kv_heads * p->attend.row_tiles;
  p->keys = p->depth > 128 || p->type == HONE_DTYPE_F32 || p->warps < 4 ? 32 : 64;
  for (p->parts = MOST_PARTS / p->warps;; p->parts /= 2) {
    for (p->ring = 2; p->ring && (p->shared = shared_of(p)) > m->shared_bytes; p->ring--) {
    }
    if (p->ring) break;
    if (p->parts == 1) return hn_refuse(why, "%zu bytes of shared memory", p->shared);
  }
  int64_t splits = hn_div_up(2 * (int64_t)processors, p->tiles), most = hn_div_up(z->room, LEAST_KEYS);
  if (splits > most) splits = most;
  p->attend.splits = splits < 1 ? 1 : splits > MOST_SPLITS ? MOST_SPLITS : (uint32_t)splits;
  if (!fits(p->tiles * p->attend.splits)) return hn_refuse(why, "more than 2^31 blocks");
  p->arrived_bytes = p->attend.splits > 1 ? hn_round_up((size_t)p->tiles * sizeof(uint32_t), 256) : 0;
  p->parts_bytes = p->attend.splits > 1
                       ? (size_t)p->tiles * p->attend.splits * 16 * p->warps * (p->depth + 2) * sizeof(float)
                       : 0;
  return true;
}

static bool read_attributes(const hone_step *s, plan *p, hone_reason *why) {
  hn_cached_attention_args *a = &p->attend;
  const int64_t window = hone_node_int(s->node, "local_window_size", -1);
  const float scale = hone_node_float(s->node, "scale", 0), cap = hone_node_float(s->node, "softcap", 0);
  if (hone_node_int(s->node, "sliding_window_cache", 0) > 0) return hn_refuse(why, "the cache drops tokens");
  a->causal = hone_node_int(s->node, "causal", 1) != 0;
  a->window = window > 0 && window < INT32_MAX ? (uint32_t)window : 0;
  a->sinks = has(s, SINK) || hone_node_int(s->node, "smooth_softmax", 0) > 0;
  a->scale = scale != 0 ? scale : 1.0f / sqrtf((float)a->z.size);
  if (cap > 0) a->cap = cap, a->scale /= cap;
  return true;
}

static bool describe(const hone_step *s, const hone_machine *m, plan *p, hone_reason *why) {
  memset(p, 0, sizeof *p);
  if (!s->node || s->n_epilogue) return hn_refuse(why, "group query attention has no epilogue");
  if (!hn_cuda_gives(s, PRESENT_KEY) || !hn_cuda_gives(s, PRESENT_VALUE) || !hn_cuda_gives(s, Y))
    return hn_refuse(why, "the cache is not handed on");
  for (uint32_t i = FURTHER; i < s->n_inputs; i++)
    if (has(s, i) && i != SINK) return hn_refuse(why, "input %u", i);
  if (!read_types(s, m, p, why)) return false;
  if (!s->input[TOTAL].constant)
    return hn_refuse(why, "total_sequence_length is not known"); /* the host has it */
  const hone_tensor_desc *q = &s->input[Q].desc, *present = &s->output[PRESENT_KEY].desc;
  const bool packed = !has(s, K), turned = hone_node_int(s->node, "do_rotary", 0) != 0;
  const int64_t heads = hone_node_int(s->node, "num_heads", 0),
                kv_heads = hone_node_int(s->node, "kv_num_heads", 0), size = present->dim[3],
                had = has(s, PAST_KEY) ? s->input[PAST_KEY].desc.dim[2] : 0;
  if (q->dim[0] < 1 || q->dim[1] < 1 || size < 1 || present->dim[2] < q->dim[1] || had > present->dim[2])
    return hn_refuse(why, "an empty operand");
  if (size > 256) return hn_refuse(why, "more than 256 values a head");
  p->new_elements = q->dim[0] * q->dim[1] * (heads + 2 * kv_heads) * size;
  p->cache_elements = 2 * hone_desc_count(present);
  if (!fits(p->new_elements) || !fits(hn_div_up(p->cache_elements, THREADS)) || !fits(present->dim[2]))
    return hn_refuse(why, "more than 2^31 elements");
  p->attend.z = p->place.z =
      (hn_cached_sizes){.batch = (uint32_t)q->dim[0],
                        .tokens = (uint32_t)q->dim[1],
                        .fresh = *(const int32_t *)s->input[TOTAL].constant == q->dim[1],
                        .heads = (uint32_t)heads,
                        .kv_heads = (uint32_t)kv_heads,
                        .group = (uint32_t)(heads / kv_heads),
                        .size = (uint32_t)size,
                        .had = (uint32_t)had,
                        .room = (uint32_t)present->dim[2]};
  for (int i = 0; i < 3; i++) {
    p->place.row[i] = packed ? q->dim[2] : (i ? kv_heads : heads) * size;
    p->place.at[i] = packed && i ? (heads + (i - 1) * kv_heads) * size : 0;
  }
  if (turned) {
    p->place.rows = (uint32_t)s->input[COS].desc.dim[0], p->place.half = (uint32_t)s->input[COS].desc.dim[1];
    p->place.interleaved = hone_node_int(s->node, "rotary_interleaved", 0) != 0;
    p->place.n_positions = has(s, POSITIONS) ? (uint32_t)hone_desc_count(&s->input[POSITIONS].desc) : 0;
  }
  p->depth = (uint32_t)hn_round_up((size_t)size, 16);
  const int64_t bytes = size * (int64_t)hone_dtype_size(p->type);
  p->vectors = bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 0;
  p->q_bytes = hn_round_up((size_t)(q->dim[0] * q->dim[1] * heads * bytes), 256);
  return read_attributes(s, p, why) && choose(p, m, why);
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  plan p;
  return describe(s, m, &p, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  plan p;
  if (!describe(s, m, &p, NULL)) return HN_REFUSED_SECONDS;
  const double rows = 16.0 * p.warps * (double)p.tiles, flops = 4 * rows * p.attend.z.room * p.depth;
  return hn_cuda_attention_seconds(s, m, flops, p.type, p.split3) + 6e-6;
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  plan p;
  hone_reason why = {""};
  if (!describe(s, m, &p, &why)) return hn_not_described(s, &why, error);
  n->workspace_bytes = p.q_bytes + p.arrived_bytes + p.parts_bytes;
  return HONE_OK;
}

/* Addresses of this run. */
static void set_addresses(plan *p, const hone_step_run *r) {
  const hone_step *s = r->step;
  char *room = r->workspace;
  hn_cached_place_args *a = &p->place;
  const bool packed = !has(s, K);
  a->z.lengths = p->attend.z.lengths = r->in[LENGTHS];
  for (int i = 0; i < 3; i++) a->now[i] = r->in[packed ? Q : i];
  for (int i = 0; i < 2; i++) {
    a->past[i] = has(s, PAST_KEY) ? r->in[PAST_KEY + i] : NULL;
    a->present[i] = r->out[PRESENT_KEY + i];
  }
  a->cos = p->place.half ? r->in[COS] : NULL, a->sin = p->place.half ? r->in[SIN] : NULL;
  a->positions = a->n_positions ? r->in[POSITIONS] : NULL;
  a->q = room, a->arrived = (void *)(room + p->q_bytes);
  a->n_arrived = p->arrived_bytes ? (uint32_t)p->tiles : 0;
  a->refused = hn_cuda_refusal(hn_cuda_queue_of(r)), a->node = (uintptr_t)s->node;
  p->attend.q = a->q, p->attend.arrived = a->arrived;
  p->attend.parts = (void *)(room + p->q_bytes + p->arrived_bytes);
  p->attend.k = r->out[PRESENT_KEY], p->attend.v = r->out[PRESENT_VALUE], p->attend.y = r->out[Y];
  p->attend.sink = has(s, SINK) && !HN_FAULT("cuda_group_query_sink") ? r->in[SINK] : NULL;
  if (HN_FAULT("cuda_group_query_window") && p->attend.window) p->attend.window++;
  const uintptr_t all = (uintptr_t)p->attend.k | (uintptr_t)p->attend.v;
  while (p->vectors && all % p->vectors) p->vectors = p->vectors > 4 ? p->vectors / 2 : 0;
}

static hone_status place(const hone_step_run *r, const plan *p, hone_error *error) {
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_step *s = r->step;
  const bool there = p->place.past[0] == p->place.present[0] && p->place.past[1] == p->place.present[1];
  const int64_t count = p->new_elements > p->place.n_arrived ? p->new_elements : p->place.n_arrived;
  hn_str text = {0};
  hone_status st = HONE_OK;
  hn_str_printf(&text, "#define HN_T %s\n#define HN_TABLES %s\n", hn_cuda_type(p->type),
                hn_cuda_type(p->place.half ? s->input[COS].desc.dtype : p->type));
  if (!there)
    st = hn_cuda_launch_line(q, "cached_place", &text, "cached_carry", p->cache_elements, THREADS, &p->place,
                             sizeof p->place, error);
  if (!st)
    st = hn_cuda_launch_line(q, "cached_place", &text, "cached_place", count, THREADS, &p->place,
                             sizeof p->place, error);
  hn_str_free(&text);
  return st;
}

static hone_status attend(const hone_step_run *r, const plan *p, hone_error *error) {
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hone_step *s = r->step;
  const uint32_t threads = 32 * p->warps * p->parts,
                 by_shared = (uint32_t)(hn_cuda_machine(q)->shared_bytes / (p->shared + 1024)),
                 by_registers = p->depth <= 64 && p->type != HONE_DTYPE_F32 ? 512 / threads : 1,
                 blocks = by_shared < by_registers ? by_shared : by_registers;
  hn_str text = {0};
  if (p->vectors) hn_str_printf(&text, "#define HN_VECTORS %u\n", p->vectors);
  hn_str_printf(
      &text,
      "#define HN_T %s\n#define DEPTH %u\n#define DEPTH_V DEPTH\n#define WARPS %u\n#define PARTS %u\n"
      "#define KEYS %u\n#define RING %u\n#define BLOCKS %u\n#define HN_SINK %s\n%s%s",
      hn_cuda_type(p->type), p->depth, p->warps, p->parts, p->keys, p->ring, blocks ? blocks : 1,
      hn_cuda_type(has(s, SINK) ? s->input[SINK].desc.dtype : p->type),
      p->split3 ? "#define HN_SPLIT3 1\n" : "", p->type != HONE_DTYPE_F32 ? "#define HN_FAST_MATH 1\n" : "");
  const hn_cuda_kernel k = {"attention_cached", text.ptr, "attention_cached"};
  const hn_cuda_shape shape = {.grid = {(uint32_t)p->tiles * p->attend.splits, 1, 1},
                               .threads = threads,
                               .shared = (uint32_t)p->shared,
                               .overlap = true};
  const hone_status st = text.failed ? hn_fail_memory(error, text.cap, "device text")
                                     : hn_cuda_launch(q, &k, &shape, &p->attend, sizeof p->attend, error);
  hn_str_free(&text);
  return st;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  plan p;
  hone_reason why = {""};
  if (!describe(r->step, hn_cuda_machine(hn_cuda_queue_of(r)), &p, &why))
    return hn_not_described(r->step, &why, error);
  set_addresses(&p, r);
  const hone_status st = place(r, &p, error);
  return st ? st : attend(r, &p, error);
}

/* A cache that does not grow is the one that is handed on: what is behind the new tokens stays. */
static int32_t over(const hone_step *s, uint32_t i) {
  if (i != PRESENT_KEY && i != PRESENT_VALUE) return -1;
  const uint32_t past = i == PRESENT_KEY ? PAST_KEY : PAST_VALUE;
  return has(s, past) && hone_desc_same_dims(&s->input[past].desc, &s->output[i].desc) ? (int32_t)past : -1;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  (void)m;
  hn_cuda_tf32_work(s, w);
}

HN_TACTIC(cuda, group_query_attention, "com.microsoft.GroupQueryAttention", 3, .accepts = accepts,
          .cost = cost, .need = need, .run = run, .over = over, .work = work);
