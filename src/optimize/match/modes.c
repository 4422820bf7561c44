#include "optimize/match/modes.h"

#include "optimize/match/match.h"
#include "optimize/match/read.h"

#include <string.h>

enum { MAX_DEPTH = 16, MAX_OPERANDS = 8 };

bool hn_node_list_has(const hn_node_list *list, const hone_node *node) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->at[i] == node) return true;
  return false;
}

bool hn_node_list_add(hn_node_list *list, hone_node *node) {
  if (hn_node_list_has(list, node)) return true;
  if (list->n == HN_TRACE_NODES) return false;
  list->at[list->n++] = node;
  return true;
}

static bool push(hn_modes *m, int64_t size, int64_t stride, int32_t of) {
  if (size == 1) return true;
  if (m->n == HN_MODES) return false;
  m->mode[m->n++] = (hn_mode){size, stride, of};
  return true;
}

void hn_nodes_own(hn_node_list *nodes, const hn_node_list *via, const hn_strided *in, uint32_t n_in) {
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < via->n; i++) {
      const hone_node *n = via->at[i];
      bool mine = !hn_node_list_has(nodes, n);
      for (uint32_t o = 0; o < n->n_out && mine; o++) {
        const hn_value *v = n->out[o];
        if (!v) continue;
        mine = !v->is_output;
        for (size_t u = 0; u < v->users.len && mine; u++)
          mine = v->users.ptr[u].node->graph == n->graph && hn_node_list_has(nodes, v->users.ptr[u].node);
        for (uint32_t k = 0; k < n_in && mine; k++) mine = in[k].base != v;
      }
      if (mine) more |= hn_node_list_add(nodes, via->at[i]) && hn_node_list_has(nodes, n);
    }
  }
}

bool hn_modes_of(hn_value *v, hn_modes *out) {
  const hone_tensor_desc *d = &v->desc;
  if (!hone_desc_known(d) || hone_desc_count(d) < 1) return false;
  *out = (hn_modes){.base = v, .rank = d->rank};
  int64_t stride = hone_desc_count(d);
  for (int32_t i = 0; i < d->rank; i++) {
    stride /= d->dim[i];
    out->dim[i] = d->dim[i];
    if (!push(out, d->dim[i], stride, i)) return false;
  }
  return true;
}

bool hn_modes_reshape(hn_modes *m, int32_t rank, const int64_t *dim) {
  hn_modes r = {.base = m->base, .offset = m->offset, .rank = rank};
  uint32_t at = 0;
  hn_mode left = {.size = 1};
  for (int32_t d = 0; d < rank; d++) {
    int64_t need = r.dim[d] = dim[d];
    while (need > 1) {
      if (left.size == 1) {
        if (at == m->n) return false;
        left = m->mode[at++];
      }
      if (left.size <= need) {
        if (need % left.size || !push(&r, left.size, left.stride, d)) return false;
        need /= left.size;
        left.size = 1;
      } else {
        if (left.size % need) return false;
        left.size /= need;
        if (!push(&r, need, left.stride * left.size, d)) return false;
        need = 1;
      }
    }
  }
  if (left.size != 1 || at != m->n) return false;
  *m = r;
  return true;
}

bool hn_modes_transpose(hn_modes *m, const hone_node *node) {
  size_t n;
  const int64_t *perm = hone_node_ints(node, "perm", &n);
  hn_modes r = {.base = m->base, .offset = m->offset, .rank = m->rank};
  if (n && n != (size_t)m->rank) return false;
  for (int32_t d = 0; d < m->rank; d++) {
    const int32_t from = n ? (int32_t)perm[d] : m->rank - 1 - d;
    if (from < 0 || from >= m->rank) return false;
    r.dim[d] = m->dim[from];
    for (uint32_t i = 0; i < m->n; i++)
      if (m->mode[i].of == from && !push(&r, m->mode[i].size, m->mode[i].stride, d)) return false;
  }
  *m = r;
  return true;
}

bool hn_modes_expand(hn_modes *m, int32_t rank, const int64_t *dim) {
  hn_modes r = {.base = m->base, .offset = m->offset, .rank = rank};
  const int32_t shift = rank - m->rank;
  if (shift < 0) return false;
  for (int32_t d = 0; d < rank; d++) {
    const int64_t have = d < shift ? 1 : m->dim[d - shift];
    r.dim[d] = dim[d];
    if (have != dim[d] && (have != 1 || !push(&r, dim[d], 0, d))) return false;
    for (uint32_t i = 0; i < m->n; i++)
      if (d >= shift && m->mode[i].of == d - shift && !push(&r, m->mode[i].size, m->mode[i].stride, d))
        return false;
  }
  *m = r;
  return true;
}

/* `count` neighbours from `first` on along dimension d. */
static bool narrow(hn_modes *m, int32_t d, int64_t first, int64_t count) {
  if (first < 0 || count < 1 || first + count > m->dim[d]) return false;
  int64_t inside = m->dim[d];
  hn_modes r = {.base = m->base, .offset = m->offset, .rank = m->rank};
  memcpy(r.dim, m->dim, sizeof r.dim);
  r.dim[d] = count;
  bool done = first == 0 && count == m->dim[d];
  for (uint32_t i = 0; i < m->n; i++) {
    hn_mode k = m->mode[i];
    if (k.of == d && !done) {
      /* Whole steps of this mode, or one element of it and a part of those inside. */
      inside /= k.size;
      r.offset += first / inside * k.stride;
      first %= inside;
      if (count >= inside) {
        if (first || count % inside) return false;
        k.size = count / inside;
        done = true;
      } else {
        if (first + count > inside) return false;
        k.size = 1;
        done = first == 0 && count == inside;
      }
    }
    if (!push(&r, k.size, k.stride, k.of)) return false;
  }
  *m = r;
  return done;
}

/* Every step-th of dimension d, from the first on. */
static bool thin(hn_modes *m, int32_t d, int64_t step) {
  int64_t stride;
  if (step == 1 || m->dim[d] == 1) return true;
  if (step < 1 || !hn_modes_single(m, d, &stride)) return false;
  hn_modes r = {.base = m->base, .offset = m->offset, .rank = m->rank};
  memcpy(r.dim, m->dim, sizeof r.dim);
  r.dim[d] = (m->dim[d] + step - 1) / step;
  bool done = false;
  for (uint32_t i = 0; i < m->n; i++) {
    const hn_mode k = m->mode[i];
    if (k.of != d) {
      if (!push(&r, k.size, k.stride, k.of)) return false;
    } else if (!done) {
      if (!push(&r, r.dim[d], stride * step, d)) return false;
      done = true;
    }
  }
  *m = r;
  return true;
}

static bool slice(hn_modes *m, const hone_node *n) {
  int64_t start[HONE_MAX_RANK], end[HONE_MAX_RANK], axis[HONE_MAX_RANK], step[HONE_MAX_RANK];
  bool absent, no_axes, no_steps;
  const int64_t count = hn_node_ints_or_input(n, "starts", 1, start, HONE_MAX_RANK, &absent);
  if (count < 1 || hn_node_ints_or_input(n, "ends", 2, end, HONE_MAX_RANK, &absent) != count) return false;
  const int64_t axes = hn_node_ints_or_input(n, "axes", 3, axis, HONE_MAX_RANK, &no_axes),
                steps = hn_node_ints_or_input(n, "steps", 4, step, HONE_MAX_RANK, &no_steps);
  if ((!no_axes && axes != count) || (!no_steps && steps != count)) return false;
  for (int64_t i = 0; i < count; i++) {
    if (!no_steps && step[i] < 1) return false;
    const int64_t a = no_axes ? i : axis[i] < 0 ? axis[i] + m->rank : axis[i];
    if (a < 0 || a >= m->rank) return false;
    const int64_t dim = m->dim[a];
    int64_t from = start[i] < 0 ? start[i] + dim : start[i], to = end[i] < 0 ? end[i] + dim : end[i];
    from = from < 0 ? 0 : from > dim ? dim : from;
    to = to < 0 ? 0 : to > dim ? dim : to;
    if (!narrow(m, (int32_t)a, from, to - from) || !thin(m, (int32_t)a, no_steps ? 1 : step[i])) return false;
  }
  return true;
}

static int32_t axis_of(const hone_node *n, int32_t rank) {
  const int64_t a = hone_node_int(n, "axis", 0);
  return (int32_t)(a < 0 ? a + rank : a);
}

static bool part_of_split(hn_modes *m, const hone_node *n, const hn_value *v) {
  const int32_t axis = axis_of(n, m->rank);
  int64_t first = 0;
  if (axis < 0 || axis >= m->rank) return false;
  for (uint32_t i = 0; i < n->n_out && n->out[i] != v; i++) {
    if (!n->out[i] || !hone_desc_known(&n->out[i]->desc)) return false;
    first += n->out[i]->desc.dim[axis];
  }
  return narrow(m, axis, first, v->desc.dim[axis]);
}

/* Gather of one constant index: that slice, its dimension gone or 1. */
static bool one_index(hn_modes *m, const hone_node *n, const hn_value *v) {
  double index;
  const int32_t axis = axis_of(n, m->rank);
  if (!hn_constant_scalar(hn_in(n, 1), &index) || axis < 0 || axis >= m->rank) return false;
  const int64_t i = (int64_t)(index < 0 ? index + (double)m->dim[axis] : index);
  return narrow(m, axis, i, 1) && hn_modes_reshape(m, v->desc.rank, v->desc.dim);
}

/* The operand that a product or quotient with a constant number scales, and the factor. */
static hn_value *scaled(const hone_node *n, double *factor) {
  const bool mul = hn_is_op(n, "Mul"), div = hn_is_op(n, "Div");
  double c;
  if ((!mul && !div) || n->n_in != 2 || !n->in[0] || !n->in[1]) return NULL;
  for (int i = 1; i >= (mul ? 0 : 1); i--)
    if (hn_constant_scalar(n->in[i], &c) && hn_same_shape(&n->in[1 - i]->desc, &n->out[0]->desc)) {
      *factor = div ? 1 / c : c;
      return n->in[1 - i];
    }
  return NULL;
}

static bool trace(hn_value *v, double *scale, hn_node_list *via, hn_modes *out, int depth) {
  hone_node *n = v->producer;
  /* What others read, too, is made with its scale, which no step has to take then. */
  if (scale && !hn_value_single_use(v)) scale = NULL;
  if (!hone_desc_known(&v->desc) || hone_desc_count(&v->desc) < 1) return false;
  if (!n || n->graph != v->graph || n->domain[0] || !n->n_in || !n->in[0] || depth == MAX_DEPTH)
    return hn_modes_of(v, out);
  const uint32_t nodes = via->n;
  const double before = scale ? *scale : 1;
  double factor;
  hn_value *x = n->in[0], *inner = scale ? scaled(n, &factor) : NULL;
  bool ok = false;
  if (inner) {
    ok = inner->desc.dtype == v->desc.dtype && trace(inner, scale, via, out, depth + 1);
    if (ok) *scale *= factor;
  } else if (x->desc.dtype == v->desc.dtype && x->graph == v->graph) {
    /* Scales commute with moves. */
    if (n->op && (n->op->flags & HONE_OP_VIEW) && v == n->out[0] && !x->foreign)
      ok = trace(x, scale, via, out, depth + 1) && hn_modes_reshape(out, v->desc.rank, v->desc.dim);
    else if (hn_is_op(n, "Transpose"))
      ok = trace(x, scale, via, out, depth + 1) && hn_modes_transpose(out, n);
    else if (hn_is_op(n, "Split"))
      ok = trace(x, NULL, via, out, depth + 1) && part_of_split(out, n, v);
    else if (hn_is_op(n, "Slice"))
      ok = trace(x, scale, via, out, depth + 1) && slice(out, n);
    else if (hn_is_op(n, "Gather"))
      ok = trace(x, scale, via, out, depth + 1) && one_index(out, n, v);
    else if (hn_is_op(n, "Expand"))
      ok = trace(x, scale, via, out, depth + 1) && hn_modes_expand(out, v->desc.rank, v->desc.dim);
  }
  if (ok && hn_node_list_add(via, n)) return true;
  via->n = nodes;
  if (scale) *scale = before;
  return hn_modes_of(v, out);
}

bool hn_modes_part(hn_value *v, hn_modes *out) {
  const hone_node *n = v->producer;
  if (!n || n->domain[0] || !n->n_in || !n->in[0] || !hone_desc_known(&v->desc) ||
      !hn_modes_of(n->in[0], out))
    return false;
  if (hn_is_op(n, "Split")) return part_of_split(out, n, v);
  if (hn_is_op(n, "Slice")) return slice(out, n);
  return hn_is_op(n, "Gather") && one_index(out, n, v);
}

bool hn_modes_contiguous(const hn_modes *m) {
  int64_t stride = 1;
  for (uint32_t i = m->n; i-- > 0; stride *= m->mode[i].size)
    if (m->mode[i].stride != stride) return false;
  return true;
}

bool hn_modes_trace(hn_value *v, double *scale, hn_node_list *via, hn_modes *out) {
  return trace(v, scale, via, out, 0);
}

bool hn_modes_single(const hn_modes *m, int32_t d, int64_t *stride) {
  bool any = false;
  *stride = 0;
  for (uint32_t i = 0; i < m->n; i++) {
    if (m->mode[i].of != d) continue;
    if (any && *stride != m->mode[i].stride * m->mode[i].size) return false;
    any = true;
    *stride = m->mode[i].stride;
  }
  return true;
}

int32_t hn_modes_common(const hn_modes *const *m, uint32_t n, int64_t *size, hn_mode_strides *out) {
  uint32_t at[MAX_OPERANDS] = {0};
  hn_mode left[MAX_OPERANDS];
  int32_t count = 0;
  if (n > MAX_OPERANDS) return -1;
  for (uint32_t k = 0; k < n; k++) left[k].size = 1;
  for (;;) {
    int64_t least = 0;
    uint32_t through = 0;
    for (uint32_t k = 0; k < n; k++) {
      if (left[k].size == 1 && at[k] < m[k]->n && m[k]->mode[at[k]].of < m[k]->rank - 2)
        left[k] = m[k]->mode[at[k]++];
      through += left[k].size == 1;
      if (left[k].size > 1 && (!least || left[k].size < least)) least = left[k].size;
    }
    if (through) return through == n ? count : -1;
    if (count == HONE_MAX_RANK - 2) return -1;
    for (uint32_t k = 0; k < n; k++) {
      if (left[k].size % least) return -1;
      left[k].size /= least;
      out[k].stride[count] = left[k].stride * left[k].size;
    }
    size[count++] = least;
  }
}
