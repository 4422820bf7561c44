/* Lines: what three plans have in common. How a plan is moved stands in move.c. */
#include "optimize/plan/line.h"
#include "optimize/plan/line_inside.h"

#include <math.h>
#include <stdio.h>

/* Constants of a plan's own that are kept for comparing, in bytes: of one, and of all. */
enum { MOST_BYTES = 2 << 20, MOST_TOGETHER = 4 << 20 };
/* A constant of more bytes is rather cut out of a larger one than evaluated again. */
enum { QUICKLY_MADE = 16 << 10 };

/* ------------------------------------------------------------------ samples */

hn_sample *hn_sample_of(const hn_numbers *w) {
  hn_sample *s = hn_calloc(1, sizeof *s);
  if (!s) return NULL;
  s->form[0] = w->form[0], s->form[1] = w->form[1];
  s->n = (uint32_t)w->at.len, s->n_costs = (uint32_t)w->costs.len, s->n_descs = (uint32_t)w->descs.len;
  s->n_contents = (uint32_t)w->contents.len, s->n_reals = (uint32_t)w->reals.len;
  s->number = HN_NEW_ARRAY(&s->arena, int64_t, s->n + 1);
  s->cost = HN_NEW_ARRAY(&s->arena, double, s->n_costs + 1);
  s->real = HN_NEW_ARRAY(&s->arena, float, s->n_reals + 1);
  s->desc = HN_NEW_ARRAY(&s->arena, hn_dims, s->n_descs + 1);
  s->content = HN_NEW_ARRAY(&s->arena, hn_bytes, s->n_contents + 1);
  uint8_t *readers = hn_content_readers(w->plan);
  bool good = readers && s->number && s->cost && s->real && s->desc && s->content;
  for (uint32_t i = 0; i < s->n && good; i++) s->number[i] = *w->at.ptr[i];
  for (uint32_t i = 0; i < s->n_costs && good; i++) s->cost[i] = *w->costs.ptr[i];
  for (uint32_t i = 0; i < s->n_reals && good; i++) s->real[i] = *w->reals.ptr[i];
  for (uint32_t i = 0; i < s->n_descs && good; i++)
    s->desc[i] = (hn_dims){w->descs.ptr[i].first, w->descs.ptr[i].desc->rank};
  size_t all = 0;
  for (uint32_t i = 0; i < s->n_contents && good; i++) {
    const hn_content *c = &w->contents.ptr[i];
    hn_bytes *b = &s->content[i];
    const int64_t bytes = hone_desc_bytes(&c->tensor->desc);
    good = bytes >= 0;
    *b = (hn_bytes){.desc = c->desc,
                    .dtype = c->tensor->desc.dtype,
                    .made = c->made != NULL,
                    .seen = hn_content_seen(readers, c->value),
                    .bytes = good ? (size_t)bytes : 0};
    if (b->bytes > MOST_BYTES || (all += b->bytes) > MOST_TOGETHER) continue;
    b->data = hn_arena_memdup(&s->arena, c->tensor->data, b->bytes + (b->bytes == 0));
    good = b->data != NULL;
  }
  hn_free(readers);
  if (good) return s;
  hn_sample_free(s);
  return NULL;
}

hn_sample *hn_sample_take(hn_plan *p, hone_tensor_desc *const *more, uint32_t n_more) {
  hn_numbers w;
  hn_sample *s = hn_numbers_list(p, more, n_more, &w) ? hn_sample_of(&w) : NULL;
  hn_numbers_free(&w);
  return s;
}

void hn_sample_free(hn_sample *s) {
  if (!s) return;
  hn_arena_free(&s->arena);
  hn_free(s);
}

bool hn_sample_alike(const hn_sample *a, const hn_sample *b) {
  return memcmp(a->form, b->form, sizeof a->form) == 0 && a->n == b->n && a->n_costs == b->n_costs &&
         a->n_reals == b->n_reals && a->n_descs == b->n_descs && a->n_contents == b->n_contents;
}

bool hn_sample_same(const hn_sample *a, const hn_sample *b) {
  if (!hn_sample_alike(a, b) || memcmp(a->number, b->number, a->n * sizeof *a->number) != 0 ||
      memcmp(a->real, b->real, a->n_reals * sizeof *a->real) != 0)
    return false;
  for (uint32_t i = 0; i < a->n_contents; i++) {
    const hn_bytes *x = &a->content[i], *y = &b->content[i];
    if (x->bytes != y->bytes || !x->data != !y->data || (x->data && memcmp(x->data, y->data, x->bytes) != 0))
      return false;
  }
  return true;
}

/* ------------------------------------------------------------------ numbers */

static bool refuse(hone_reason *why, const char *text) {
  if (why) snprintf(why->text, sizeof why->text, "%s", text);
  return false;
}

/* base + slope * t through three points, in whole numbers. */
static bool even(const int64_t at[3], int64_t a, int64_t b, int64_t c, int64_t *base, int64_t *slope) {
  int64_t rise, step, far;
  if (__builtin_sub_overflow(b, a, &rise) || rise % (at[1] - at[0])) return false;
  *slope = rise / (at[1] - at[0]);
  if (__builtin_mul_overflow(*slope, at[0], &step) || __builtin_sub_overflow(a, step, base)) return false;
  if (__builtin_mul_overflow(*slope, at[2], &step) || __builtin_add_overflow(*base, step, &far)) return false;
  return far == c;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The parabola through three points, for what only reports look at. */
static void parabola(const int64_t at[3], const double y[3], double out[3]) {
  const double a = (double)at[0], b = (double)at[1], c = (double)at[2];
  const double ab = (y[1] - y[0]) / (b - a), bc = (y[2] - y[1]) / (c - b), bend = (bc - ab) / (c - a);
  out[2] = bend;
  out[1] = ab - bend * (a + b);
  out[0] = y[0] - out[1] * a - bend * a * a;
}

double hn_line_cost(const hn_line *l, uint32_t i, int64_t t) {
  const double *c = l->cost[i], x = (double)t;
  return c[0] + x * (c[1] + x * c[2]);
}

bool hn_line_moves(const hn_line *l, const hn_dims *d) {
  for (int32_t i = 0; i < d->rank; i++)
    if (l->slope[d->first + (uint32_t)i]) return true;
  return false;
}

/* Every dimension that moves is 2 or more at t. */
static bool large_enough(const hn_line *l, int64_t t) {
  for (uint32_t k = 0; k < l->n_descs; k++)
    for (int32_t i = 0; i < l->desc[k].rank; i++)
      if (l->slope[l->desc[k].first + (uint32_t)i] &&
          hn_line_number(l, l->desc[k].first + (uint32_t)i, t) < 2)
        return false;
  return true;
}

/* ------------------------------------------------------------------ reals */

static bool same_real(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

/* What is made of whole numbers in f32, too. */
static bool is_whole(float x) { return fabsf(x) < 1 << 24 && x == truncf(x) && !(x == 0 && signbit(x)); }

float hn_line_real(const hn_line *l, uint32_t i, int64_t t) {
  return l->real_slope[i] ? (float)(l->real_base[i] + l->real_slope[i] * t) : l->real[i];
}

/* A length that went into a program is a whole number. */
static bool know_real(hn_line *l, const hn_sample *const s[3], const int64_t at[3], uint32_t i) {
  const float a = s[0]->real[i], b = s[1]->real[i], c = s[2]->real[i];
  l->real[i] = a;
  if (same_real(a, b) && same_real(a, c)) return true;
  return is_whole(a) && is_whole(b) && is_whole(c) &&
         even(at, (int64_t)a, (int64_t)b, (int64_t)c, &l->real_base[i], &l->real_slope[i]);
}

/* ------------------------------------------------------------------ constants */

/* Copies what `small` and `large`, row-major tensors of one rank, have in common from their beginnings: equal
 * or copied to `small`. */
bool hn_leading_block(void *small, const int64_t *dim, const void *large, const int64_t *whole, int32_t rank,
                      size_t element, bool copy) {
  if (rank == 0) {
    if (copy) memcpy(small, large, element);
    return memcmp(small, large, element) == 0;
  }
  size_t inner = element, outer = element;
  for (int32_t i = 1; i < rank; i++) inner *= (size_t)dim[i], outer *= (size_t)whole[i];
  if (dim[0] > whole[0]) return false;
  if (rank == 1 || inner == outer) {
    bool same = true; /* equal rows lie without a gap only if all inner dimensions are equal */
    for (int32_t i = 1; i < rank; i++) same = same && dim[i] == whole[i];
    if (same) {
      if (copy && dim[0]) memcpy(small, large, inner * (size_t)dim[0]);
      return !dim[0] || memcmp(small, large, inner * (size_t)dim[0]) == 0;
    }
  }
  for (int64_t i = 0; i < dim[0]; i++)
    if (!hn_leading_block((char *)small + (size_t)i * inner, dim + 1, (const char *)large + (size_t)i * outer,
                          whole + 1, rank - 1, element, copy))
      return false;
  return true;
}

static bool part_of(const hn_sample *small, const hn_sample *large, uint32_t i) {
  const hn_bytes *s = &small->content[i], *l = &large->content[i];
  const hn_dims *d = &small->desc[s->desc];
  return s->data && l->data && d->rank >= 0 &&
         hn_leading_block(s->data, small->number + d->first, l->data,
                          large->number + large->desc[l->desc].first, d->rank, hone_dtype_size(s->dtype),
                          false);
}

static bool same_bytes(const hn_bytes *a, const hn_bytes *b) {
  return a->data && b->data && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static bool integer_at(const hn_bytes *b, size_t i, int64_t *out) {
  const float x = b->dtype == HONE_DTYPE_F32 ? ((const float *)b->data)[i] : 0;
  *out = b->dtype == HONE_DTYPE_I64   ? ((const int64_t *)b->data)[i]
         : b->dtype == HONE_DTYPE_I32 ? ((const int32_t *)b->data)[i]
                                      : (int64_t)(is_whole(x) ? x : 0);
  return is_whole(x);
}

/* Whole numbers each of which is even. */
static bool even_content(hn_line *l, const hn_sample *const s[3], const int64_t at[3], uint32_t i) {
  const hn_bytes *b = &s[0]->content[i];
  hn_line_content *c = &l->content[i];
  if ((b->dtype != HONE_DTYPE_I64 && b->dtype != HONE_DTYPE_I32 && b->dtype != HONE_DTYPE_F32) || !b->data)
    return false;
  c->count = b->bytes / hone_dtype_size(b->dtype);
  c->base = HN_NEW_ARRAY(&l->arena, int64_t, 2 * c->count + 1);
  if (!c->base) return false;
  c->slope = c->base + c->count;
  for (int k = 1; k < 3; k++)
    if (!s[k]->content[i].data || s[k]->content[i].bytes != b->bytes) return false;
  for (size_t k = 0; k < c->count; k++) {
    int64_t y[3];
    for (int j = 0; j < 3; j++)
      if (!integer_at(&s[j]->content[i], k, &y[j])) return false;
    if (!even(at, y[0], y[1], y[2], &c->base[k], &c->slope[k])) return false;
  }
  return true;
}

static bool keep_whole(hn_line *l, uint32_t i, const hn_sample *from) {
  hn_line_content *c = &l->content[i];
  const hn_dims *d = &from->desc[from->content[i].desc];
  void *copy = hn_arena_memdup(&l->arena, from->content[i].data,
                               from->content[i].bytes + (from->content[i].bytes == 0));
  if (!copy) return false;
  c->whole = copy;
  memcpy(c->dim, from->number + d->first, (size_t)d->rank * sizeof *c->dim);
  return true;
}

static uint64_t pattern_of(const hn_sample *s, uint32_t i) {
  const hn_bytes *b = &s->content[i];
  const hn_dims *d = &s->desc[b->desc];
  const hone_tensor_desc desc = hone_desc(b->dtype, d->rank, s->number + d->first);
  return hn_content_pattern(&desc, b->data);
}

static bool know_content(hn_line *l, const hn_sample *const s[3], const int64_t at[3], uint32_t i) {
  hn_line_content *c = &l->content[i];
  const hn_bytes *b = &s[2]->content[i];
  c->desc = b->desc;
  const bool grows = hn_line_moves(l, &l->desc[b->desc]);
  if (!grows) {
    c->kind = HN_CONTENT_FIXED;
    if (same_bytes(&s[0]->content[i], b) && same_bytes(&s[1]->content[i], b)) return keep_whole(l, i, s[2]);
    c->kind = HN_CONTENT_EVEN;
    if (even_content(l, s, at, i)) return true;
  }
  c->kind = HN_CONTENT_MADE;
  if (b->made && !b->seen && b->bytes <= QUICKLY_MADE) return true;
  c->kind = HN_CONTENT_PART;
  if (grows && part_of(s[0], s[2], i) && part_of(s[1], s[2], i)) return keep_whole(l, i, s[2]);
  c->kind = HN_CONTENT_MADE;
  if (!b->made || !b->seen) return b->made;
  c->pattern = pattern_of(s[0], i);
  return c->pattern && pattern_of(s[1], i) == c->pattern && pattern_of(s[2], i) == c->pattern;
}

/* What the line says of a constant of this sample, which is at t. */
static bool fits_content(const hn_line *l, const hn_sample *s, uint32_t i, int64_t t) {
  const hn_line_content *c = &l->content[i];
  const hn_bytes *b = &s->content[i];
  const hn_dims *d = &s->desc[b->desc];
  const int64_t *dim = s->number + d->first;
  if (c->kind == HN_CONTENT_MADE && c->pattern && pattern_of(s, i) != c->pattern) return false;
  if (c->kind == HN_CONTENT_MADE) return true; /* hn_plan_attach makes it and compares */
  if (!b->data) return false;
  if (c->kind == HN_CONTENT_EVEN) {
    for (size_t k = 0; k < c->count; k++) {
      int64_t x;
      if (!integer_at(b, k, &x) || x != c->base[k] + c->slope[k] * t) return false;
    }
    return true;
  }
  bool inside = true, around = true;
  for (int32_t k = 0; k < d->rank; k++) inside &= dim[k] <= c->dim[k], around &= dim[k] >= c->dim[k];
  const size_t element = hone_dtype_size(b->dtype);
  if (inside) return hn_leading_block(b->data, dim, c->whole, c->dim, d->rank, element, false);
  return around && c->kind == HN_CONTENT_PART &&
         hn_leading_block((void *)(uintptr_t)c->whole, c->dim, b->data, dim, d->rank, element, false);
}

/* ------------------------------------------------------------------ lines */

hn_line *hn_line_make(const hn_sample *const s[3], const int64_t at[3], hone_reason *why) {
  if (why) why->text[0] = 0;
  if (at[0] >= at[1] || at[1] >= at[2] || common_divisor(at[1] - at[0], at[2] - at[0]) != 1)
    return refuse(why, "the sizes are not apart enough"), NULL;
  if (!hn_sample_alike(s[0], s[1]) || !hn_sample_alike(s[0], s[2]))
    return refuse(why, "the steps are others"), NULL;
  hn_line *l = hn_calloc(1, sizeof *l);
  if (!l) return NULL;
  l->form[0] = s[0]->form[0], l->form[1] = s[0]->form[1];
  l->n = s[0]->n, l->n_costs = s[0]->n_costs, l->n_descs = s[0]->n_descs, l->n_contents = s[0]->n_contents,
  l->n_reals = s[0]->n_reals;
  l->low = at[0], l->high = at[2];
  l->base = HN_NEW_ARRAY(&l->arena, int64_t, l->n + 1);
  l->slope = HN_NEW_ARRAY(&l->arena, int64_t, l->n + 1);
  l->cost = (double(*)[3])hn_arena_array(&l->arena, l->n_costs + 1, sizeof *l->cost);
  l->real = HN_NEW_ARRAY(&l->arena, float, l->n_reals + 1);
  l->real_base = HN_NEW_ARRAY(&l->arena, int64_t, l->n_reals + 1);
  l->real_slope = HN_NEW_ARRAY(&l->arena, int64_t, l->n_reals + 1);
  l->desc = hn_arena_memdup(&l->arena, s[0]->desc, (l->n_descs + 1) * sizeof *l->desc);
  l->content = HN_NEW_ARRAY(&l->arena, hn_line_content, l->n_contents + 1);
  bool good =
      l->base && l->slope && l->cost && l->real && l->real_base && l->real_slope && l->desc && l->content;
  for (uint32_t i = 0; i < l->n && good; i++)
    if (!even(at, s[0]->number[i], s[1]->number[i], s[2]->number[i], &l->base[i], &l->slope[i]))
      good = refuse(why, "a number does not grow evenly");
  for (uint32_t i = 0; i < l->n_reals && good; i++)
    if (!know_real(l, s, at, i)) good = refuse(why, "a number in a program does not grow evenly");
  for (uint32_t i = 0; i < l->n_costs && good; i++)
    parabola(at, (const double[3]){s[0]->cost[i], s[1]->cost[i], s[2]->cost[i]}, l->cost[i]);
  if (good && !large_enough(l, l->low)) good = refuse(why, "a dimension is smaller than 2");
  if (good && !large_enough(l, l->high)) good = refuse(why, "a dimension is smaller than 2");
  for (uint32_t i = 0; i < l->n_contents && good; i++)
    if (!know_content(l, s, at, i))
      good = refuse(why, "a constant follows from sizes in a way that is not known");
  if (good) return l;
  hn_line_free(l);
  return NULL;
}

void hn_line_free(hn_line *l) {
  if (!l) return;
  hn_arena_free(&l->arena);
  hn_free(l);
}

int64_t hn_line_low(const hn_line *l) { return l->low; }
int64_t hn_line_high(const hn_line *l) { return l->high; }

bool hn_line_fits(const hn_line *l, const hn_sample *s, int64_t t) {
  if (memcmp(l->form, s->form, sizeof l->form) != 0 || l->n != s->n || l->n_costs != s->n_costs ||
      l->n_reals != s->n_reals || l->n_descs != s->n_descs || l->n_contents != s->n_contents)
    return false;
  for (uint32_t i = 0; i < l->n; i++)
    if (s->number[i] != hn_line_number(l, i, t)) return false;
  for (uint32_t i = 0; i < l->n_reals; i++)
    if (!same_real(s->real[i], hn_line_real(l, i, t))) return false;
  for (uint32_t i = 0; i < l->n_contents; i++)
    if (!fits_content(l, s, i, t)) return false;
  return true;
}

bool hn_line_extend(hn_line *l, const hn_sample *s, int64_t t) {
  /* Beyond some size whole numbers would leave their type. */
  if (t > 1 << 22 || t < -(1 << 22) || !hn_line_fits(l, s, t) || !large_enough(l, t)) return false;
  if (t < l->low) l->low = t;
  if (t <= l->high) return true;
  for (uint32_t i = 0; i < l->n_contents; i++)
    if (l->content[i].kind == HN_CONTENT_PART && !keep_whole(l, i, s)) return false;
  l->high = t;
  return true;
}
