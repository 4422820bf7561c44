/* How a pass says what it did, or why not (pass.h). */
#include "optimize/passes/common/pass.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(hn_pass_context *ctx, const char *format, va_list args) {
  vsnprintf(ctx->why.text, sizeof ctx->why.text, format, args);
}

hn_pass_result hn_pass_hit(hn_pass_context *ctx, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(ctx, format, args);
  va_end(args);
  return HN_PASS_HIT;
}

hn_pass_result hn_pass_miss(hn_pass_context *ctx, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(ctx, format, args);
  va_end(args);
  return HN_PASS_MISS;
}

hn_pass_result hn_pass_miss_below(hn_pass_context *ctx, int level, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(ctx, format, args);
  va_end(args);
  ctx->enable_level = level;
  return HN_PASS_MISS;
}

static bool among(const hone_node *n, hone_node *const *nodes, uint32_t count) {
  for (uint32_t i = 0; n && i < count; i++)
    if (nodes[i] == n) return true;
  return false;
}

/* A value that only these nodes read is neither written nor read any more; for others a read less is left. */
static double traffic_between(hone_node *const *nodes, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t o = 0; nodes[i] && o < nodes[i]->n_out; o++) {
      const hn_value *v = nodes[i]->out[o];
      const int64_t bytes =
          v && hone_desc_known(&v->desc) && v->desc.dtype != HONE_DTYPE_NONE ? hone_desc_bytes(&v->desc) : 0;
      size_t inside = 0;
      if (bytes <= 0 || (nodes[i]->op && nodes[i]->op->flags & HONE_OP_VIEW)) continue;
      for (size_t u = 0; u < v->users.len; u++) inside += among(v->users.ptr[u].node, nodes, n);
      if (inside) sum += (double)bytes * (double)(inside + (inside == v->users.len && !v->is_output));
    }
  return sum;
}

/* "a, b, c": of many nodes the first few. NULL: no memory. */
static char *names_of(hn_arena *arena, hone_node *const *nodes, uint32_t n) {
  enum { MOST = 12, MORE = 32 };
  size_t room = MORE, shown = 0;
  for (uint32_t i = 0; i < n; i++)
    if (nodes[i] && shown++ < MOST) room += strlen(nodes[i]->name) + 2;
  char *text = hn_arena_raw(arena, room, 1), *at = text;
  size_t k = 0;
  for (uint32_t i = 0; i < n && text && k < MOST; i++) {
    if (!nodes[i]) continue;
    const size_t length = strlen(nodes[i]->name);
    if (k++) memcpy(at, ", ", 2), at += 2;
    memcpy(at, nodes[i]->name, length);
    at += length;
  }
  if (text) *at = 0;
  if (text && shown > MOST) snprintf(at, MORE, " and %zu more", shown - MOST);
  return text;
}

void hn_pass_record_add(hn_pass_context *ctx, bool hit, hone_node *const *nodes, uint32_t n,
                        const char *format, ...) {
  char reason[240];
  va_list args;
  va_start(args, format);
  vsnprintf(reason, sizeof reason, format, args);
  va_end(args);
  ctx->changed |= hit;
  hn_pass_record_text(ctx, hit, nodes, n, hn_arena_strdup(&ctx->report->arena, reason));
}

void hn_pass_record_text(hn_pass_context *ctx, bool hit, hone_node *const *nodes, uint32_t n,
                         const char *reason) {
  hn_pass_report *r = ctx->report;
  hn_pass_record rec = {.pass = ctx->pass->name,
                        .level = ctx->pass->level,
                        .hit = hit,
                        .bytes_saved = traffic_between(nodes, n),
                        .enable_level = -1};
  rec.nodes = names_of(&r->arena, nodes, n);
  rec.reason = reason;
  rec.nodes_before = rec.nodes_after = hn_model_nodes(ctx->model);
  /* The record is a by-product: losing one for lack of memory must not lose the optimisation. */
  if (rec.nodes && rec.reason) (void)hn_vec_push(&r->records, rec);
}
