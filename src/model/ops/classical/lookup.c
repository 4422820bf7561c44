#include "model/ops/classical/lookup.h"

#include "model/ops/classical/features.h"

/* What is equal has one code: every NaN, and 0 and -0. */
static uint64_t code_of_real(double v) {
  uint64_t bits;
  if (isnan(v)) return UINT64_C(0x7ff8000000000000);
  v += 0.0;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

static void codes_of(const hone_tensor *x, bool reals, int64_t first, int64_t n, uint64_t *code) {
  if (!reals) {
    hn_read_i64((int64_t *)code, x->data, x->desc.dtype, first, n);
    return;
  }
  double v[HN_LOOKUP_BLOCK];
  hn_read_f64(v, x->data, x->desc.dtype, first, n);
  for (int64_t i = 0; i < n; i++) code[i] = code_of_real(v[i]);
}

/* Small reals differ in their highest bits alone: both halves count on either side of the product. */
static uint64_t mixed(uint64_t v) {
  v = (v ^ v >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  return v ^ v >> 32;
}

static uint64_t hash_of_text(hone_string s) {
  uint64_t h = s.len, word;
  size_t i = 0;
  for (; i + sizeof word <= s.len; i += sizeof word) {
    memcpy(&word, s.ptr + i, sizeof word);
    h = mixed(h ^ word);
  }
  for (word = 0; i < s.len; i++) word = word << 8 | (uint8_t)s.ptr[i];
  return mixed(h ^ word);
}

/* The slot of a key: where it stands, or a free one. */
static uint64_t slot_of_text(const hn_lookup *l, hone_string s) {
  const hone_string *keys = l->keys->data;
  uint64_t at = hash_of_text(s) & l->mask;
  while (l->slot[at] && !hn_same_text(keys[l->slot[at] - 1], s)) at = (at + 1) & l->mask;
  return at;
}
static uint64_t slot_of_code(const hn_lookup *l, uint64_t code) {
  uint64_t at = mixed(code) & l->mask;
  while (l->slot[at] && l->code[l->slot[at] - 1] != code) at = (at + 1) & l->mask;
  return at;
}

hone_status hn_lookup_make(hone_call *call, const hone_tensor *keys, hn_lookup *out, hone_error *error) {
  const int64_t n = hn_count(keys);
  const bool text = keys->desc.dtype == HONE_DTYPE_STRING;
  uint64_t slots = 4;
  if (n >= INT32_MAX) return hn_op_refuse(call->node, error, "%lld keys", (long long)n);
  while (slots < 2 * (uint64_t)n) slots *= 2;
  uint64_t *code = text ? NULL : hn_scratch(call, n, sizeof *code, error);
  *out = (hn_lookup){keys, code, hn_scratch(call, (int64_t)slots, sizeof *out->slot, error), slots - 1};
  if ((!text && !code) || !out->slot) return HONE_ERROR_MEMORY;
  memset(out->slot, 0, (size_t)slots * sizeof *out->slot);
  const bool reals = hone_dtype_is_float(keys->desc.dtype);
  for (int64_t i = 0; !text && i < n; i += HN_LOOKUP_BLOCK)
    codes_of(keys, reals, i, hn_min(HN_LOOKUP_BLOCK, n - i), code + i);
  for (int64_t i = 0; i < n; i++) {
    const uint64_t at =
        text ? slot_of_text(out, ((const hone_string *)keys->data)[i]) : slot_of_code(out, code[i]);
    out->slot[at] = (uint32_t)i + 1; /* the last of equal ones */
  }
  return HONE_OK;
}

void hn_lookup_places(const hn_lookup *l, const hone_tensor *x, int64_t first, int64_t n, int64_t *place) {
  if (l->keys->desc.dtype == HONE_DTYPE_STRING) {
    const hone_string *s = (const hone_string *)x->data + first;
    for (int64_t i = 0; i < n; i++) place[i] = (int64_t)l->slot[slot_of_text(l, s[i])] - 1;
    return;
  }
  uint64_t code[HN_LOOKUP_BLOCK];
  codes_of(x, hone_dtype_is_float(l->keys->desc.dtype), first, n, code);
  for (int64_t i = 0; i < n; i++) place[i] = (int64_t)l->slot[slot_of_code(l, code[i])] - 1;
}
