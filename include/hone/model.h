/* Models: loading, looking inside, rewriting, saving. */
#ifndef HONE_MODEL_H
#define HONE_MODEL_H

#include <hone/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An ONNX model in memory. Immutable once loaded; may be shared between threads. Reference-counted. */
typedef struct hone_model hone_model;

/* Maps and reads an ONNX file. The model keeps the mapping (weights are not copied). HONE_ERROR_INPUT:
 * malformed; HONE_ERROR_UNSUPPORTED: operators or features outside what hone implements, all listed at once.
 */
HONE_API hone_status hone_model_load(const char *path, hone_model **out, hone_error *error);
/* The same from memory, which must stay valid as long as the model. folder: where external data lies, or
 * NULL. */
HONE_API hone_status hone_model_load_memory(const void *data, size_t size, const char *folder,
                                            hone_model **out, hone_error *error);
/* The same from hone's text form, as patterns are written (hone/plugin.h): a network of a few nodes in a line
 * each, such as
 *   opset 17 opset "my.ops" 1
 *   graph g(%x: f32[2x3]) -> (%y) { %t = Sin(%x)  %y = my.ops::Swish(%t) {beta=1.5} }
 */
HONE_API hone_status hone_model_parse(const char *text, size_t size, hone_model **out, hone_error *error);
HONE_API void hone_model_release(hone_model *model);
/* Writes valid ONNX; the file appears whole or not at all. */
HONE_API hone_status hone_model_save(const hone_model *model, const char *path, hone_error *error);

/* A graph input or output. Strings are borrowed from the model. */
typedef struct hone_port {
  const char *name;
  hone_tensor_desc desc;             /* dims < 0: unknown or symbolic */
  const char *symbol[HONE_MAX_RANK]; /* name of a symbolic dimension ("N") or NULL */
  bool optional;                     /* an input with an initializer */
} hone_port;

HONE_API uint32_t hone_model_inputs(const hone_model *model); /* those without an initializer come first */
HONE_API uint32_t hone_model_outputs(const hone_model *model);
HONE_API bool hone_model_input(const hone_model *model, uint32_t i, hone_port *port);
HONE_API bool hone_model_output(const hone_model *model, uint32_t i, hone_port *port);
HONE_API const char *hone_model_path(const hone_model *model);
HONE_API const char *hone_model_producer(const hone_model *model);
HONE_API int64_t hone_model_ir_version(const hone_model *model);
HONE_API int64_t hone_model_opset(const hone_model *model); /* of ONNX's own domain */
HONE_API uint32_t hone_model_nodes(const hone_model *model);
/* Node i in the order in which they run, as operators and tactics see it; as long as the model lives. NULL
 * behind the last. */
HONE_API const struct hone_node *hone_model_node(const hone_model *model, uint32_t i);

/* Shapes for inputs whose dimensions are not fixed. */
typedef struct hone_binding {
  const char *input;  /* name; NULL: any input that has `symbol` */
  const char *symbol; /* name of a symbolic dimension to set to dim[0], or NULL */
  int32_t rank;
  int64_t dim[HONE_MAX_RANK];
} hone_binding;

/* One binding that was chosen because the caller gave none; for display. */
typedef struct hone_bound_shape {
  const char *input;
  hone_tensor_desc desc; /* the full shape used */
  bool chosen;           /* true: hone chose a default for at least one dimension */
} hone_bound_shape;

/* Fixes all input shapes: the caller's first, then defaults (batch dimension 0: `batch` or 1; image height
 * and width: 224; other unknown: 128). The result is a new model with inferred shapes; bound[] (may be NULL)
 * needs hone_model_inputs(model) entries. */
HONE_API hone_status hone_model_bind(hone_model *model, const hone_binding *bindings, uint32_t n,
                                     int64_t batch, hone_model **out, hone_bound_shape *bound,
                                     hone_error *error);

/* A model whose inputs fix the batch (dimension 0 of every input with two and more dimensions) as one that
 * takes any: the inputs' first dimension becomes a symbol, and Reshape nodes whose constant shape begins with
 * the batch take it from their input. The result counts only when every output follows the batch (by shape
 * inference with one sample more) and random samples keep their answers beside others in a batch. *out is a
 * new model; release it. Errors: HONE_ERROR_USAGE (nothing to open, inputs that disagree),
 * HONE_ERROR_UNSUPPORTED or what inference says where a node has the batch written into it. */
HONE_API hone_status hone_model_open_batch(hone_model *model, hone_model **out, hone_error *error);

/* ---- static analysis */
/* What 8 bits do to an operator. */
typedef enum hone_quantisation {
  HONE_QUANTISATION_PRODUCT = 0, /* high gain: sums of products of codes (Conv, MatMul, Gemm) */
  HONE_QUANTISATION_CODES,       /* high: comparisons, sums, averages of codes (Relu, pools, Add with
                                    requantisation) */
  HONE_QUANTISATION_TABLE,       /* by look-up table: functions of one number (Sigmoid, Tanh, SiLU, GELU) */
  HONE_QUANTISATION_FLOAT, /* kept in float: LayerNormalization, Softmax, Exp and whatever is not known */
  HONE_QUANTISATION_MOVES  /* moves numbers, of any type */
} hone_quantisation;
enum { HONE_QUANTISATIONS = HONE_QUANTISATION_MOVES + 1 };
/* By the operator's type alone. */
HONE_API hone_quantisation hone_quantisation_of(const char *op_type);
HONE_API const char *hone_quantisation_name(hone_quantisation q); /* "products", "codes", "table"... */

typedef struct hone_node_info {
  const char *name, *op_type;
  char shape[96];                                                   /* of output 0 */
  hone_dtype dtype;                                                 /* of output 0 */
  double flops, macs, params, bytes_read, bytes_written, intensity; /* intensity: FLOPs per byte */
} hone_node_info;

typedef struct hone_inspection {
  double flops, macs, params, param_bytes, bytes,
      peak_memory_bytes; /* peak: largest sum of live tensors, weights included */
  uint32_t n_nodes;
  hone_node_info *nodes; /* [n_nodes], owned by the inspection */
  uint32_t n_outputs;
  hone_tensor_desc *outputs; /* [n_outputs] of the model, owned by the inspection */
} hone_inspection;

/* Needs a bound model (every shape known; data-dependent shapes count as zero). Inputs with an initializer
 * have its value. */
HONE_API hone_status hone_model_inspect(const hone_model *model, hone_inspection *out, hone_error *error);
HONE_API void hone_inspection_free(hone_inspection *inspection);

/* ---- rewriting */
typedef enum hone_rewrite_by {
  HONE_REWRITE_PASS = 0, /* a graph pass */
  HONE_REWRITE_FUSION,   /* a fusion of lowering: near misses alone */
  HONE_REWRITE_SLOWER    /* the same; nothing is against it but that it is slower */
} hone_rewrite_by;

typedef struct hone_rewrite {
  const char *pass;   /* "fold_batch_norm", or a fusion: "epilogue" */
  bool hit;           /* false: a near miss */
  char nodes[256];    /* names of the nodes concerned */
  char reason[200];   /* near miss: why it was refused; hit: what was done */
  double bytes_saved; /* memory traffic between those nodes as separate operators; 0: none, or not known */
  int enable_level;   /* near miss: the level that would do it all the same; -1: none does */
  hone_rewrite_by by;
} hone_rewrite;

typedef struct hone_rewrites {
  uint32_t n;
  hone_rewrite *record; /* owned */
  uint32_t nodes_before, nodes_after;
} hone_rewrites;

typedef struct hone_optimize_options {
  int level;          /* 0..3 */
  bool verify_passes; /* prove numeric equality after every pass */
  const char *passes; /* comma-separated globs of hone_pass_at's names, "-glob" switches off; NULL: all */
  double max_seconds; /* budget of constant folding; 0: 20 */
} hone_optimize_options;

/* What may be named in `passes`: the graph passes in their order, then the fusions of lowering, which only
 * plans have (hone_plan_options). A list with names of passes runs these alone, one with names of fusions has
 * these alone; the other kind stays whole. */
typedef struct hone_pass_info {
  const char *name, *about;
  int level;   /* the lowest that does it */
  bool fusion; /* of lowering */
} hone_pass_info;
/* False behind the last one. */
HONE_API bool hone_pass_at(uint32_t i, hone_pass_info *out);

/* Rewrites a copy of the model by graph passes alone. rewrites may be NULL. */
HONE_API hone_status hone_model_optimize(hone_model *model, const hone_optimize_options *options,
                                         hone_model **out, hone_rewrites *rewrites, hone_error *error);
HONE_API void hone_rewrites_free(hone_rewrites *rewrites);

/* ---- parts of a model, for who writes one operator for several nodes */
typedef struct hone_subgraph_value {
  const char
      *name; /* as the pattern has it, without '%': "x0" from outside, "t1" from inside; "" for a number */
  hone_tensor_desc desc;
  const char *value; /* its name in the model */
  int32_t node;      /* that makes it; -1: it comes from outside */
  bool is_number;    /* a constant of one element from outside, which the pattern names by its value */
  double number;
  const hone_tensor *constant; /* from outside, with more elements; NULL: none */
} hone_subgraph_value;

typedef struct hone_subgraph_node {
  const hone_node *node;
  uint32_t n_in;
  const int32_t *in; /* [n_in] index of the value; -1: left out */
  int32_t out;       /* index of output 0 */
} hone_subgraph_node;

/* Nodes of a model that make one value: in their order, the last one makes the result. */
typedef struct hone_subgraph {
  uint32_t n_nodes, n_values;
  const hone_subgraph_node *node;
  const hone_subgraph_value *value;
  const char *pattern; /* as hone_pattern_desc has it, a node a line */
  const char *inputs;  /* "%x0 %x1": values from outside that are no numbers */
  void *impl;
} hone_subgraph;

/* The part that consists of these nodes, by their names. Of a model that passes have rewritten
 * (hone_model_optimize): what has become of them. HONE_ERROR_USAGE: there is no such node; it has several
 * results, or one that the nodes use is also used elsewhere. Release it before the model. */
HONE_API hone_status hone_model_subgraph(hone_model *model, const char *const *nodes, uint32_t n,
                                         hone_subgraph *out, hone_error *error);
HONE_API void hone_subgraph_free(hone_subgraph *part);

/* ---- built-in networks */
typedef struct hone_zoo_options {
  int64_t batch; /* 0: symbolic "N" */
  double width;  /* channel multiplier (attention heads in bert_base); 0: 1.0 */
  int64_t size;  /* image size or sequence length; 0: the network's own */
  uint64_t seed; /* 0: 1 */
  int64_t round; /* scaled channel counts are rounded to the nearest multiple of this, at least one; 0: 1 */
  bool boxes;    /* of a detector: its heads are decoded, and NonMaxSuppression keeps the best boxes. Outputs
                    "selected" (rows of image, class, box), "boxes" (their centre and size in pixels) and
                    "scores". Nodes behind the network are called "detect/..." */
} hone_zoo_options;

/* Names and what they are: static, NULL behind the last. options may be NULL. The model is the caller's. */
HONE_API uint32_t hone_zoo_count(void);
HONE_API const char *hone_zoo_name(uint32_t i);
HONE_API const char *hone_zoo_about(uint32_t i);
HONE_API hone_status hone_zoo_build(const char *name, const hone_zoo_options *options, hone_model **out,
                                    hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
