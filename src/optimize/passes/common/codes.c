#include "optimize/passes/common/codes.h"

static const hn_code_move moves[] = {{"Reshape", HN_MOVE_SAME_COUNT},
                                     {"Flatten", HN_MOVE_SAME_COUNT},
                                     {"Squeeze", HN_MOVE_SAME_COUNT},
                                     {"Unsqueeze", HN_MOVE_SAME_COUNT},
                                     {"Transpose", HN_MOVE_SAME_COUNT},
                                     {"DepthToSpace", HN_MOVE_SAME_COUNT},
                                     {"SpaceToDepth", HN_MOVE_SAME_COUNT},
                                     {"Slice", 0},
                                     {"Split", HN_MOVE_MANY_OUT},
                                     {"Gather", 0},
                                     {"GatherElements", 0},
                                     {"GatherND", 0},
                                     {"Expand", 0},
                                     {"Tile", 0},
                                     {"Pad", HN_MOVE_PADS},
                                     {"Resize", HN_MOVE_RESIZES},
                                     {"Upsample", HN_MOVE_RESIZES}};

const hn_code_move *hn_code_move_of(const hone_node *n) {
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
    if (hn_is_op(n, moves[i].op)) return &moves[i];
  return NULL;
}

static bool fixed(const hn_value *v) { return hn_known(v) && !v->producer; }
hn_value *hn_zero_of(const hone_node *n) { return hn_in(n, 2); }

/* A Q or DQ of 8 bits with constant parameters; `single`: one of each. */
static bool plain(const hone_node *n, const hn_value *codes, bool single) {
  const hn_value *scale = n->in[1], *zero = hn_zero_of(n);
  const hone_dtype t = codes->desc.dtype;
  return (t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8) && fixed(scale) && scale->desc.dtype == HONE_DTYPE_F32 &&
         (!zero || fixed(zero)) && (!single || hone_desc_count(&scale->desc) == 1) &&
         hone_node_int(n, "block_size", 0) == 0;
}

const hone_node *hn_codes_behind(const hn_value *v, bool single) {
  const hone_node *n = v ? v->producer : NULL;
  return hn_is_op(n, "DequantizeLinear") && n->graph == v->graph && v->desc.dtype == HONE_DTYPE_F32 &&
                 plain(n, n->in[0], single)
             ? n
             : NULL;
}

bool hn_quantises(const hone_node *n) {
  return hn_is_op(n, "QuantizeLinear") && n->in[0] && n->in[0]->desc.dtype == HONE_DTYPE_F32 &&
         plain(n, n->out[0], true);
}

hn_code_map hn_code_map_of(const hone_node *n, const hn_value *codes) {
  const hn_value *zero = hn_zero_of(n);
  const hone_dtype t = codes->desc.dtype;
  hn_code_map m = {.dtype = t};
  memcpy(&m.scale, n->in[1]->constant->data, sizeof m.scale);
  if (zero)
    m.zero =
        t == HONE_DTYPE_I8 ? *(const int8_t *)zero->constant->data : *(const uint8_t *)zero->constant->data;
  return m;
}

bool hn_code_map_same(hn_code_map a, hn_code_map b) {
  return a.dtype == b.dtype && a.zero == b.zero && a.scale == b.scale && a.scale > 0x1p-100f &&
         a.scale < 0x1p100f;
}
