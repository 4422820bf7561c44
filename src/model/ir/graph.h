/* The graph representation: ONNX semantics, NCHW, always exportable. Passes rewrite it; lowering reads it.
 *
 * A model owns everything in one arena: graphs, nodes, values, attributes and constants that were computed.
 * Constants read from a file are borrowed from its mapping, which the model keeps open. Nodes form a doubly
 * linked list in execution order. Editing functions keep the lists of users right; nothing else may write
 * those fields. */
#ifndef HN_MODEL_IR_GRAPH_H
#define HN_MODEL_IR_GRAPH_H

#include "base/arena.h"
#include "base/map.h"
#include "base/os.h"
#include "base/registry.h"
#include "base/str.h"
#include "base/vec.h"

#include <hone/model.h>
#include <hone/plugin.h>
#include <string.h>

typedef struct hone_model hn_model; /* the public hone_model, seen from inside */
typedef struct hn_graph hn_graph;
typedef struct hn_value hn_value;
typedef struct hn_deferred hn_deferred; /* ir/bytes.h */

typedef struct hn_attr {
  const char *name;
  hone_attr_type type;
  union {
    int64_t i;
    float f;
    hone_string s; /* also NUL-terminated */
    hone_tensor *t;
    hn_graph *g;
    struct {
      size_t n;
      const void *ptr; /* int64_t, float or hone_string */
    } list;
  };
} hn_attr;

/* One reader of a value; node NULL is not used (graph outputs are flagged in the value). */
typedef struct hn_use {
  hone_node *node;
  uint32_t index;
} hn_use;

/* A value has one name, one producer (NULL: input, initializer or constant) and any number of users. */
struct hn_value {
  const char *name; /* unique in its graph */
  hn_graph *graph;
  bool foreign;          /* a map, or a nest that no hone_dtype says: nothing computes with it */
  hone_tensor_desc desc; /* what inference knows: dtype NONE, rank -1 where nothing is known */
  hone_node *producer;
  uint32_t producer_index;
  const hone_tensor_desc
      *declared; /* of graph outputs: the file's own words, for writing where inference knows less */
  const hone_tensor *constant; /* row-major bytes, when the value is known before the run */
  const hn_deferred *deferred; /* the constant's bytes are still to be made from this; its data is NULL */
  const hone_node *made;       /* of a constant that folding made of constants: the node, which is gone */
  bool sized;                  /* of a constant that folding made: it follows from sizes */
  uint32_t uses, folds;        /* readers that there ever were; those of them that folding evaluated, or that
                                  read the same in another type now */
  hn_value *next_sized;        /* in the model's list of such, which it may have left the graph for */
  hone_dtype was;              /* of a constant in f32 that a pass made of one of 16 bits: that type */
  bool is_input;               /* of its graph; an input with a constant is an overridable initializer */
  bool is_output;              /* of its graph, at least once */
  HN_VEC(hn_use) users;        /* also in nested graphs that capture it */
  uint32_t id;                 /* dense number in the model, for side tables */
  uint32_t index;              /* place in graph->values */
};

struct hone_node {
  hn_graph *graph;
  const char *op_type, *domain, *name;
  const hone_op_desc *op; /* NULL until resolved */
  int32_t opset;
  uint32_t n_in, n_out, n_attr;
  hn_value **in;  /* NULL entry: optional input left out */
  hn_value **out; /* NULL entry: output not wanted */
  hn_attr *attr;
  hone_node *prev, *next;
  uint32_t n_origin;
  const uint32_t *origin; /* indices into model->source: the nodes of the file that this node stands for */
  uint32_t origin_room;   /* of that array, where hn_node_inherit made it for this node alone; else 0 */
  uint32_t mark;          /* scratch for traversals */
};

struct hn_graph {
  hn_model *model;
  hn_graph *parent;       /* NULL: the main graph */
  hone_node *parent_node; /* If, Loop or Scan whose attribute this graph is */
  const char *name;
  hone_node *first, *last;
  uint32_t n_nodes;
  bool unfit; /* a branch of If whose shapes contradict each other: inference ended inside it (ir/infer.c) */
  HN_VEC(hn_value *) inputs, outputs; /* in order; an output may repeat */
  HN_VEC(hn_value *) values;          /* all values that were ever made here */
  hn_map by_name;
};

/* A node of the file, for provenance: never changes after loading. */
typedef struct hn_source_node {
  const char *name, *op_type;
} hn_source_node;

typedef struct hn_opset {
  const char *domain; /* "" is ONNX's own */
  int64_t version;
} hn_opset;

struct hone_model {
  hn_arena arena;
  uint32_t unfit_branches; /* branches of If that may be taken although their shapes contradict each other */
  const char *path;        /* for messages; "" when built in memory */
  int64_t ir_version;
  const char *producer;
  HN_VEC(hn_opset) opsets;
  hn_graph *graph;
  struct graph_entry *graphs;   /* every graph ever made, for freeing */
  HN_VEC(const char *) symbols; /* names of symbolic dimensions: dim -2 is symbols[0], -3 symbols[1]... */
  HN_VEC(hn_source_node) source;
  HN_VEC(hn_file) files;       /* mappings that constants borrow from */
  hn_model *borrowed_from;     /* a clone keeps its original alive */
  const hn_listing *operators; /* those that its nodes may be; NULL: it was not resolved yet. Held */
  _Atomic uint32_t refs;
  uint32_t next_value_id, next_name;
  hn_value *sized;    /* constants that followed from sizes, the latest first */
  struct hn_origins { /* what hn_node_inherit knows of the node that it was last called for */
    const hone_node *node;
    uint32_t known; /* of its origins, which have the mark `now` */
    uint32_t *mark; /* [room] by index into source */
    uint32_t now, room;
    uint64_t looked_at; /* origins so far, of all nodes */
  } origins;
  const uint32_t
      *port; /* [the main graph's inputs] as callers count them, once the model is ready; or NULL */
  size_t n_ports;
  struct hn_filled *filled; /* bytes that several constants share (ir/bytes.h), the latest first */
};

/* Folding made the value's constant, of sizes or of what followed from them. made: see hn_value. */
void hn_value_set_folded(hn_value *value, const hone_tensor *tensor, const hone_node *made);

/* Is the node (or NULL) ONNX's own operator of this type? Other domains may have the same names. */
static inline bool hn_is_op(const hone_node *n, const char *op) {
  return n && hn_same_name(n->op_type, op) && (!*n->domain || hn_same_name(n->domain, "ai.onnx"));
}

/* The attribute that a Constant node (or NULL) shows as it is: numbers, which may lie at any alignment and
 * live as long as the model. NULL: its value is spelled in another way, or this is no such node. */
const hone_tensor *hn_constant_shown(const hone_node *node);

/* Does the node draw numbers, so that two equal ones may differ? Dropout does where it may be in training. */
static inline bool hn_draws(const hone_node *n) {
  return n->op && (n->op->flags & HONE_OP_RANDOM || (hn_is_op(n, "Dropout") && n->n_in > 2 && n->in[2]));
}

/* Elements that point to bytes elsewhere: only the host can follow them. */
static inline bool hn_dtype_points(hone_dtype d) {
  return d == HONE_DTYPE_STRING || !hone_dtype_is_tensor(d);
}

/* ---- models. Models are reference-counted: create and clone return 1, destroy drops one. */
hn_model *hn_model_create(const char *path); /* NULL when out of memory; has an empty main graph */
hn_model *hn_model_retain(hn_model *model);
void hn_model_destroy(hn_model *model);
/* Deep copy of structure; constants are shared, so the clone holds a reference to the original. */
hone_status hn_model_clone(hn_model *model, hn_model **out, hone_error *error);
int64_t hn_model_opset(const hn_model *model, const char *domain); /* 0: not imported */
/* Nodes of all its graphs, nested ones included. */
uint32_t hn_model_nodes(const hn_model *model);
/* Number of a named symbolic dimension (<= -2), made when new; HONE_DIM_UNKNOWN when out of memory. */
int64_t hn_model_symbol(hn_model *model, const char *name);
const char *hn_model_symbol_name(const hn_model *model, int64_t dim); /* NULL: not a named symbol */

/* ---- building. All return NULL when out of memory. Names are copied. */
hn_graph *hn_graph_create(hn_model *model, hn_graph *parent, const char *name);
/* name NULL: a fresh unique one. The name must be free in this graph. */
hn_value *hn_value_create(hn_graph *graph, const char *name);
/* The same with a name that lives as long as the model, which is not copied. */
hn_value *hn_value_create_named(hn_graph *graph, const char *name);
/* The value of that name in this graph or the ones around it. */
hn_value *hn_value_find(const hn_graph *graph, const char *name);
/* A constant in the model's arena: copies data (row-major, desc.dim known) when copy, else borrows it. */
hn_value *hn_value_constant(hn_graph *graph, const char *name, const hone_tensor_desc *desc, const void *data,
                            bool copy);
/* Makes an existing value constant (it must have no producer). tensor must live as long as the model. */
void hn_value_set_constant(hn_value *value, const hone_tensor *tensor);
/* Appends (before NULL) or inserts a node; in and out arrays are copied, users and producers registered.
 * domain NULL: "". name NULL: made up. Provenance is empty: see hn_node_inherit. */
hone_node *hn_node_create(hn_graph *graph, hone_node *before, const char *op_type, const char *domain,
                          const char *name, hn_value *const *in, uint32_t n_in, hn_value *const *out,
                          uint32_t n_out);
/* Appends a node like that of another model, which lives as long as this one: texts, numbers and provenance
 * are shared. in and out are arrays of this model's memory, which the node keeps; attributes that are graphs
 * are the other model's until they are set. */
hone_node *hn_node_create_like(hn_graph *graph, const hone_node *like, hn_value **in, hn_value **out);
bool hn_graph_add_input(hn_graph *graph, hn_value *value);
bool hn_graph_add_output(hn_graph *graph, hn_value *value);

/* Attributes: set or replace; data is copied; false when out of memory. */
bool hn_node_set_int(hone_node *node, const char *name, int64_t v);
bool hn_node_set_type(hone_node *node, const char *name, hone_dtype v);
bool hn_node_set_float(hone_node *node, const char *name, float v);
bool hn_node_set_string(hone_node *node, const char *name, const char *v, size_t len);
bool hn_node_set_ints(hone_node *node, const char *name, const int64_t *v, size_t n);
bool hn_node_set_floats(hone_node *node, const char *name, const float *v, size_t n);
bool hn_node_set_strings(hone_node *node, const char *name, const hone_string *v, size_t n);
bool hn_node_set_tensor(hone_node *node, const char *name,
                        const hone_tensor *v); /* struct copied, data borrowed */
bool hn_node_set_graph(hone_node *node, const char *name, hn_graph *v);
const hn_attr *hn_node_attr(const hone_node *node, const char *name); /* NULL: absent */
/* hone_node_string with its length: there may be zeros in it. */
hone_string hn_node_text(const hone_node *node, const char *name, const char *otherwise);
void hn_node_drop_attr(hone_node *node, const char *name);
/* Copies all attributes of another node of the same model (graphs are shared). */
bool hn_node_copy_attrs(hone_node *node, const hone_node *from);

/* ---- editing */
bool hn_node_set_input(hone_node *node, uint32_t index,
                       hn_value *value); /* index may be n_in: grows by one */
/* Gives the outputs below `least` that are left out values which nobody reads, as references fill them. False
 * when out of memory. */
bool hn_node_make_outputs(hone_node *node, uint32_t least);
/* Forgets outputs at the end that are left out, but not those below `least`. */
void hn_node_trim_outputs(hone_node *node, uint32_t least);
/* All users of `old` (and graph outputs) read `with` instead. A graph output keeps its name: the names of the
 * two values are exchanged then. False when that is impossible (both are graph outputs or inputs) or out of
 * memory. */
bool hn_value_replace(hn_value *old, hn_value *with);
/* Unlinks the node; its outputs lose their producer. They must have no users unless they were replaced or
 * made constant. */
void hn_node_remove(hone_node *node);
void hn_node_move(hone_node *node, hone_node *before); /* within its graph; before NULL: to the end */
/* Adds another node's provenance to this one. */
bool hn_node_inherit(hone_node *node, const hone_node *from);
bool hn_node_set_origin(hone_node *node, const uint32_t *origin, uint32_t n);
/* True when exactly one use exists, and it is no graph output: a fusion may swallow the value. */
bool hn_value_single_use(const hn_value *value);
/* A tensor of numbers in this model's memory: no text, no sequence, nothing of others. */
static inline bool hn_value_is_plain(const hn_value *v) {
  return !v->foreign && !hn_dtype_points(v->desc.dtype) && v->desc.dtype != HONE_DTYPE_NONE;
}
/* True when a graph reads the value somewhere or returns it. */
bool hn_value_needed(const hn_value *value);

/* ---- whole graphs */
/* Puts nodes into an order in which values are made before they are read, keeping the given order where it is
 * valid. Cycles are named. Recurses into nested graphs. */
hone_status hn_graph_sort(hn_graph *graph, hone_error *error);
/* Infers dtype and shape of every value from the inputs' descriptors and known constants; folds what
 * inference needs (shape arithmetic) on the side without changing the graph. Conflicts with declared shapes
 * are errors. */
hone_status hn_model_infer(hn_model *model, hone_error *error);
/* Checks the structure's invariants: names, users, producers, order. For tests and after each pass. */
hone_status hn_model_check(const hn_model *model, hone_error *error);

#endif
