/* Where values live: a slot for each layout of a value. */
#include "optimize/lower/emit.h"

#include "model/ir/bytes.h"

#include <string.h>

uint32_t hn_slot_new(hn_lowering *l, const hone_tensor_desc *desc, const hn_value *value, hn_place place) {
  hn_plan *p = l->plan;
  int64_t bytes = hone_desc_known(desc) ? hone_desc_bytes(desc) : 0;
  hn_slot s = {.desc = *desc,
               .value = value,
               .place = place,
               .alias = HN_NO_SLOT,
               .bytes = bytes > 0 ? (uint64_t)bytes : 0};
  return hn_vec_push(&p->slots, s) ? (uint32_t)p->slots.len - 1 : HN_NO_SLOT;
}

uint32_t hn_slot_alias(hn_lowering *l, uint32_t of, const hone_tensor_desc *desc, const hn_value *value) {
  uint32_t s = hn_slot_new(l, desc, value, l->plan->slots.ptr[of].place);
  if (s == HN_NO_SLOT) return s;
  hn_slot *a = &l->plan->slots.ptr[s], *o = &l->plan->slots.ptr[of];
  a->alias = of;
  a->constant = o->constant;
  a->input = o->input;
  if (o->alias != HN_NO_SLOT) a->offset = o->offset;
  return s;
}

uint32_t hn_slot_part(hn_lowering *l, uint32_t of, const hn_strided *part) {
  uint32_t s = hn_slot_alias(l, of, &part->desc, part->base);
  if (s == HN_NO_SLOT) return s;
  hn_slot *a = &l->plan->slots.ptr[s];
  const uint64_t bytes = (uint64_t)part->offset * hone_dtype_size(part->desc.dtype);
  a->offset += bytes;
  if (a->constant) a->constant = (const char *)a->constant + bytes;
  return s;
}

uint32_t *hn_slots_of(hn_lowering *l, const hn_value *v) {
  uint32_t **at = &l->slot_of[v->id];
  if (!*at) {
    *at = HN_NEW_ARRAY(l->temp, uint32_t, 2);
    if (*at) (*at)[HN_ROW] = (*at)[HN_LAST] = HN_NO_SLOT;
  }
  return *at;
}

hone_tensor_desc hn_laid_out(const hone_tensor_desc *d, hone_layout layout) {
  hone_tensor_desc r = *d;
  if (hone_desc_known(d)) hone_desc_set_layout(&r, layout, 0);
  return r;
}

/* Bytes of a constant in another layout, made once at plan time. */
static const void *permuted(hn_lowering *l, const hone_tensor *t, const hone_tensor_desc *to) {
  int64_t n = hone_desc_count(&t->desc);
  size_t size = hone_dtype_size(t->desc.dtype);
  char *out = hn_arena_aligned(&l->plan->arena, (size_t)hone_desc_bytes(to), HN_MEM_ALIGN);
  if (!out) return NULL;
  int64_t index[HONE_MAX_RANK] = {0}, at = 0;
  for (int64_t i = 0; i < n; i++) {
    memcpy(out + (size_t)at * size, (const char *)t->data + (size_t)i * size, size);
    for (int32_t d = to->rank - 1; d >= 0; d--) {
      at += to->stride[d];
      if (++index[d] < to->dim[d]) break;
      at -= to->stride[d] * to->dim[d];
      index[d] = 0;
    }
  }
  l->plan->constant_bytes += (uint64_t)n * size;
  return out;
}

uint32_t hn_lower_constant(hn_lowering *l, const hn_value *v, hone_layout layout) {
  uint32_t *s = hn_slots_of(l, v);
  if (!s) return HN_NO_SLOT;
  if (s[layout] != HN_NO_SLOT) return s[layout];
  hone_tensor_desc d = hn_laid_out(&v->constant->desc, layout);
  uint32_t slot = hn_slot_new(l, &d, v, HN_PLACE_CONST);
  if (slot == HN_NO_SLOT) return slot;
  bool as_is = layout == HN_ROW || hn_layout_free(&d);
  if (!as_is && !hn_value_make_bytes(v)) return HN_NO_SLOT;
  const void *data = !as_is        ? permuted(l, v->constant, &d)
                     : v->deferred ? v->deferred->from
                                   : v->constant->data;
  if (!data) return HN_NO_SLOT;
  l->plan->slots.ptr[slot].constant = data;
  l->plan->slots.ptr[slot].deferred = v->deferred;
  return s[layout] = slot;
}

/* A vector of `n` floats in the plan. */
uint32_t hn_slot_vector(hn_lowering *l, const float *data, int64_t n) {
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  float *copy = hn_arena_aligned(&l->plan->arena, (size_t)n * sizeof *copy, HN_MEM_ALIGN);
  uint32_t slot = copy ? hn_slot_new(l, &d, NULL, HN_PLACE_CONST) : HN_NO_SLOT;
  if (slot == HN_NO_SLOT) return slot;
  memcpy(copy, data, (size_t)n * sizeof *copy);
  l->plan->slots.ptr[slot].constant = copy;
  return slot;
}
