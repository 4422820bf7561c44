/* The text form of a model: serves dumps, tests and goldens; its node lines are also the language of
 * patterns.
 *
 *   ir 8
 *   opset 17
 *   opset "com.microsoft" 1
 *   graph main(%x: f32[Nx3x224x224], %k: f32[2] = {1, 2}) -> (%y: f32[Nx64x112x112]) {
 *     const %w: f32[64x3x7x7] = rand(1)
 *     %c = Conv(%x, %w, _) {strides=[2, 2], group=1} "conv1"
 *     %y = If(%cond) {then_branch=graph yes() -> (%a) { ... }, else_branch=graph no() -> (%b) { ... }}
 *   }
 *
 * A name with other characters than A-Za-z0-9_./ is quoted: %"a b". A dimension is a number, ? or a symbol
 * (quoted when it holds an x or other characters than A-Za-z0-9_); f32[*] has an unknown rank, ? is an
 * unknown type, and seq, optional and map stand before the element's type. `_` is an input left out or an
 * output not wanted. `// ...` is a comment. Values of a constant: {1, 2.5, inf}, full(0.5), rand(seed[, low,
 * high]); printed also as #hash when they were left out (that is not read back). A constant may stand where
 * it is read: Reshape(%x, i64[2]{0, -1}); a bare number there is an f32 scalar. Attributes: integers have no
 * point, floats have one; strings are quoted; lists in []; empty lists of other than integers are written
 * floats[] and strings[]; tensors are written as constants are. */
#ifndef HN_MODEL_IR_TEXT_H
#define HN_MODEL_IR_TEXT_H

#include "model/ir/graph.h"
#include "model/ir/lex.h"

typedef struct hn_print_options {
  uint32_t max_elements; /* constants with more print as #hash; 0: 64 (UINT32_MAX: never) */
  bool node_names;       /* print the nodes' names */
  bool types;            /* print what inference knows of the values after each node, as a comment */
} hn_print_options;

/* Appends the text of the model, or of one graph (without header), to *out. options NULL: defaults. False
 * when out of memory. */
bool hn_model_print(const hn_model *model, const hn_print_options *options, hn_str *out);
bool hn_graph_print(const hn_graph *graph, const hn_print_options *options, hn_str *out);
/* One node's line, with the values' names as `name` gives them ("%x", "2.5", "_"). */
bool hn_node_print(const hone_node *node, const char *(*name)(void *arg, const hn_value *value), void *arg,
                   hn_str *out);
/* %name, quoted where needed. */
void hn_name_print(const char *name, hn_str *out);

/* Reads a model. The nodes are not resolved and nothing is inferred (hn_model_resolve, hn_model_infer). Every
 * node becomes a source node of its own. `source` names the text in errors (file:line:column). Bounded: text
 * up to 64 MiB, constants up to 1 GiB together, nesting up to 16. */
hone_status hn_model_parse(const char *source, const char *text, size_t len, hn_model **out,
                           hone_error *error);

/* ---- node lines, for patterns: `%y = Conv|ConvTranspose(%x, %w, ?%b) {group=1}` */
typedef enum hn_operand_kind {
  HN_OPERAND_NONE = 0,
  HN_OPERAND_VALUE,
  HN_OPERAND_NUMBER,
  HN_OPERAND_TENSOR
} hn_operand_kind;

typedef struct hn_operand {
  hn_operand_kind kind;
  int line, column;
  bool optional;       /* ?%b */
  bool constant;       /* !%w */
  const char *name;    /* VALUE */
  double number;       /* NUMBER: a literal or an expression of literals: 1/6, sqrt(2/pi) */
  const char *spelled; /* NUMBER: as it was written */
  hone_tensor *tensor; /* TENSOR: data in the lexer's arena */
} hn_operand;

#define HN_LINE_OPS 6

typedef struct hn_line {
  int line, column;
  uint32_t n_out, n_op, n_in, n_attr;
  const char **out;            /* NULL entry: not wanted */
  const char *op[HN_LINE_OPS]; /* alternatives; a graph has one */
  const char *domain;          /* "" or that of `com.microsoft::Gelu` */
  hn_operand *in;
  hn_attr *attr;
  const char *name; /* "conv1" or NULL */
} hn_line;

/* Reads the value of an attribute that is a graph; the current token is the word `graph`. */
typedef hn_graph *(*hn_line_graph)(void *arg, hn_lex *lex);

/* Reads one node line; everything lies in the lexer's arena. graph NULL: graphs are refused. bytes: what
 * constants may still take, counted down; NULL: constants are refused. */
hone_status hn_line_parse(hn_lex *lex, hn_line *out, hn_model *symbols, uint64_t *bytes, hn_line_graph graph,
                          void *arg);

#endif
