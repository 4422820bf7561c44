#include "optimize/step/near.h"

#include <hone/tensor.h>
#include <stdio.h>

enum { MOST = 4096, LOOKED_BACK = 64 };

void hn_miss_add(hn_misses *to, const hn_miss *m) {
  for (size_t i = to->list.len, n = 0; i-- > 0 && n < LOOKED_BACK; n++) {
    const hn_miss *k = &to->list.ptr[i];
    if (k->fusion == m->fusion && k->node[0] == m->node[0] && k->node[1] == m->node[1]) return;
  }
  if (to->list.len >= MOST || !hn_vec_push(&to->list, *m)) to->more[m->fusion]++;
}

void hn_misses_bound(hn_misses *m) {
  uint32_t kept[HN_FUSIONS] = {0};
  size_t n = 0;
  for (size_t i = 0; i < m->list.len; i++) {
    const hn_fusion f = m->list.ptr[i].fusion;
    if (kept[f]++ < HN_MISSES_KEPT)
      m->list.ptr[n++] = m->list.ptr[i];
    else
      m->more[f]++;
  }
  m->list.len = n;
}

static const char *name_of(const hone_node *n) { return n ? n->name : "?"; }

static const char *maker_of(const hn_value *v) { return v && v->producer ? v->producer->name : "?"; }

static const char *type_of(const hn_miss *m) { return m->n_nodes ? m->node[m->n_nodes - 1]->op_type : "?"; }

void hn_miss_say(const hn_miss *m, char *buf, size_t size) {
  char a[96], b[96];
  const char *value = m->value ? m->value->name : "?";
  switch (m->why) {
  case HN_MISS_OUTPUT: snprintf(buf, size, "'%.80s' is an output of the model", value); break;
  case HN_MISS_READ:
    snprintf(buf, size, "the result of '%.60s' is read by '%.60s', too", maker_of(m->value),
             name_of(m->other));
    break;
  case HN_MISS_TWICE: snprintf(buf, size, "it reads the result of '%.80s' twice", maker_of(m->value)); break;
  case HN_MISS_BODY:
    snprintf(buf, size, "'%.60s' is read by '%.60s' inside of a body, too", value, name_of(m->other));
    break;
  case HN_MISS_SHAPE:
    snprintf(buf, size, "'%.60s' is %s, the result %s", value,
             m->value ? hone_desc_format(&m->value->desc, a, sizeof a) : "?",
             m->result ? hone_desc_format(&m->result->desc, b, sizeof b) : "?");
    break;
  case HN_MISS_TYPE:
    snprintf(buf, size, "'%.80s' is %s, not f32", value,
             m->value ? hone_dtype_name(m->value->desc.dtype) : "?");
    break;
  case HN_MISS_UNKNOWN: snprintf(buf, size, "dimensions of '%.80s' are not known", value); break;
  case HN_MISS_COMPUTED: snprintf(buf, size, "'%.80s' is computed, not constant", value); break;
  case HN_MISS_OPERANDS:
    snprintf(buf, size, "%s has %u operands here, at most 2 fit", type_of(m), m->count);
    break;
  case HN_MISS_FUNCTION: snprintf(buf, size, "%s of two operands is no epilogue", type_of(m)); break;
  case HN_MISS_LEVEL: snprintf(buf, size, "level %d does it", m->enable_level); break;
  case HN_MISS_MANY: snprintf(buf, size, "more than %u operators in one step", m->count); break;
  case HN_MISS_REGISTERS: snprintf(buf, size, "too many operands, or values at a time, in one step"); break;
  case HN_MISS_TAKEN: snprintf(buf, size, "'%.80s' is part of another step", name_of(m->other)); break;
  case HN_MISS_TACTIC: snprintf(buf, size, "no tactic takes it (shape, type or function)"); break;
  case HN_MISS_SLOWER:
    if (m->apart > 0)
      snprintf(buf, size, "%.3f ms as one step, %.3f ms apart", m->together * 1e3, m->apart * 1e3);
    else
      snprintf(buf, size, "%.3f ms as one step; apart they are the end of the product before them",
               m->together * 1e3);
    break;
  case HN_MISS_CODES: snprintf(buf, size, "'%.80s' is not dequantised by constant parameters", value); break;
  case HN_MISS_SCALES:
    snprintf(buf, size, "the scales of '%.80s' are neither one nor one an output channel", value);
    break;
  case HN_MISS_BIAS:
    snprintf(buf, size, "bias '%.80s' is no constant in units of the products' scale", value);
    break;
  case HN_MISS_RANGE: snprintf(buf, size, "the codes hold values that %s cuts off", name_of(m->other)); break;
  case HN_MISS_QUANTISE:
    snprintf(buf, size, "no QuantizeLinear of constant parameters follows '%.80s'", value);
    break;
  case HN_MISS_FORM:
    snprintf(buf, size, "there is no integer form of %s", m->n_nodes ? m->node[0]->op_type : "?");
    break;
  case HN_MISS_SAME_CODES: snprintf(buf, size, "scale or zero point differ before and after it"); break;
  case HN_MISS_MATCHER: snprintf(buf, size, "%s", m->said ? m->said : ""); break;
  default: snprintf(buf, size, "%s", "");
  }
}

double hn_miss_bytes(const hn_miss *m) {
  const hn_value *v = m->n_nodes > 1 && m->node[0]->n_out ? m->node[0]->out[0] : NULL;
  if (!v || !hone_desc_known(&v->desc) || v->desc.dtype == HONE_DTYPE_NONE) return 0;
  const double bytes = (double)hone_desc_bytes(&v->desc);
  return v->is_output || v->users.len > 1 ? bytes : 2 * bytes;
}
