/* What Reshape, Transpose, Split, Slice, Gather of one index and Expand make of a value, as places in its
 * memory instead of as copies.
 *
 * A dimension is a list of modes (size and distance), outermost first; a Reshape that joins dimensions which
 * do not lie behind each other joins their lists. Modes of size 1 are left out. */
#ifndef HN_OPTIMIZE_MATCH_MODES_H
#define HN_OPTIMIZE_MATCH_MODES_H

#include "model/ir/graph.h"

enum { HN_MODES = 24, HN_TRACE_NODES = 64 };

typedef struct hn_mode {
  int64_t size, stride;
  int32_t of; /* dimension */
} hn_mode;

typedef struct hn_modes {
  hn_value *base; /* lies row-major */
  int64_t offset;
  int32_t rank;
  int64_t dim[HONE_MAX_RANK];
  uint32_t n;
  hn_mode mode[HN_MODES]; /* in the order of the dimensions */
} hn_modes;

/* A value as a part of another's memory: what Transpose, Reshape, Split and Slice make of it when nobody
 * moves the bytes. */
typedef struct hn_strided {
  hn_value *base;        /* lies row-major */
  int64_t offset;        /* of the first element, in elements */
  hone_tensor_desc desc; /* layout STRIDED */
} hn_strided;

/* A list of nodes without repetition; full: more are not added. */
typedef struct hn_node_list {
  uint32_t n;
  hone_node *at[HN_TRACE_NODES];
} hn_node_list;
bool hn_node_list_has(const hn_node_list *list, const hone_node *node);
bool hn_node_list_add(hn_node_list *list, hone_node *node);

/* What operands `in` were traced through (via) and nothing but `nodes` reads joins these; what an operand
 * lies in does not. */
void hn_nodes_own(hn_node_list *nodes, const hn_node_list *via, const hn_strided *in, uint32_t n_in);

/* v as it is. False: dimensions unknown, empty, or too many. */
bool hn_modes_of(hn_value *v, hn_modes *out);
/* v as a part of the value furthest up that still works; the nodes between are added to via. scale not NULL:
 * products and quotients with one constant number that nobody else reads are gone through too, their factors
 * multiplied into *scale. */
bool hn_modes_trace(hn_value *v, double *scale, hn_node_list *via, hn_modes *out);

/* What a Split, Slice or Gather of one index makes, as a part of what it reads. */
bool hn_modes_part(hn_value *v, hn_modes *out);
/* Whether the elements follow each other from the offset on. */
bool hn_modes_contiguous(const hn_modes *m);

/* Each in place; false leaves m undefined. */
bool hn_modes_reshape(hn_modes *m, int32_t rank, const int64_t *dim);
bool hn_modes_transpose(hn_modes *m, const hone_node *transpose);
/* Broadcasts as ONNX does. */
bool hn_modes_expand(hn_modes *m, int32_t rank, const int64_t *dim);

/* Dimension d as one mode (stride 0 when its size is 1). */
bool hn_modes_single(const hn_modes *m, int32_t d, int64_t *stride);

/* One operand's part of hn_modes_common. */
typedef struct hn_mode_strides {
  int64_t stride[HONE_MAX_RANK];
} hn_mode_strides;
/* The first m[i].rank - 2 dimensions of n operands, whose sizes have the same product, as the same list of
 * sizes: their number, or -1. */
int32_t hn_modes_common(const hn_modes *const *m, uint32_t n, int64_t *size, hn_mode_strides *out);

#endif
