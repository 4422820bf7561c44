/* What tactics of Conv in f32 have in common whose weights are known with the plan, and lie packed behind the
 * head of its blob: the head's last member is an hn_conv_packed. */
#ifndef HN_CPU_CONV_CONV_PACKED_H
#define HN_CPU_CONV_CONV_PACKED_H

#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "optimize/step/conv_attr.h"

typedef struct hn_conv_packed {
  hn_isa isa;
  int64_t weights_at, bytes; /* of the blob */
  size_t scratch;            /* bytes of a thread */
} hn_conv_packed;

/* The convolution's attributes, unless it is none for such a tactic. */
bool hn_conv_packed_of(const hone_step *s, const hone_machine *m, hn_conv_packed *p, hn_conv_attr *a,
                       hone_reason *why);
/* Lays out the blob: `head` bytes, then `floats` of weights. */
void hn_conv_packed_place(hn_conv_packed *p, size_t head, size_t floats, size_t scratch);

static inline float *hn_conv_packed_weights(const hn_conv_packed *p, void *blob) {
  return (float *)(void *)((char *)blob + p->weights_at);
}

/* The functions of such a tactic but describe, cost_of and run. HEAD { PLAN plan; hn_conv_packed packed; };
 * PACK(const PLAN *, const float *w, float *to). */
#define HN_CONV_PACKED(HEAD, PACK)                                                                           \
  static void need_of(const HEAD *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {       \
    (void)s;                                                                                                 \
    n->blob_bytes = (size_t)h->packed.bytes;                                                                 \
    n->packed = 1u << 1;                                                                                     \
    n->workspace_bytes = h->packed.scratch * m->threads;                                                     \
  }                                                                                                          \
  static size_t shared(const hone_step *s, const hone_machine *m, uint64_t *key) {                           \
    (void)key;                                                                                               \
    HEAD h;                                                                                                  \
    return describe(s, m, &h, NULL) ? (size_t)h.packed.weights_at : 0;                                       \
  }                                                                                                          \
  static hone_status fill(HEAD *h, const hone_step *s, void *blob, hone_error *error) {                      \
    (void)error;                                                                                             \
    memcpy(blob, h, sizeof *h);                                                                              \
    if (!s->own_only) PACK(&h->plan, s->input[1].constant, hn_conv_packed_weights(&h->packed, blob));        \
    return HONE_OK;                                                                                          \
  }                                                                                                          \
  HN_DESCRIBED_SIZED(HEAD, fill)

#endif
