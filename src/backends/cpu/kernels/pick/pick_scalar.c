/* Picked elements, one at a time. */
#include "backends/cpu/kernels/pick/pick.h"
#include "backends/cpu/kernels/template.h"

static void pixels(const hn_pick *pick, uint32_t *dst, ptrdiff_t dst_step, const uint32_t *src,
                   ptrdiff_t src_step, size_t count) {
  const size_t n = pick->n && HN_FAULT("pick_tail") ? pick->n - 1 : pick->n;
  for (size_t p = 0; p < count; p++, dst += dst_step, src += src_step)
    for (size_t i = 0; i < n; i++) {
      const hn_pick_window *w = pick->window + pick->first[i];
      dst[i] = src[w->at + w->from[0]];
    }
}

static const struct hn_pick_ops table = {1, pixels};
const struct hn_kernel hn_kernel_pick_scalar = {
    .name = "pick_scalar", .family = "pick", .role = "words", .isa = HN_ISA_SCALAR, .ops = &table};
