/* What the parts of the model loader share. */
#ifndef HN_MODEL_ONNX_LOAD_H
#define HN_MODEL_ONNX_LOAD_H

#include "model/ir/graph.h"
#include "model/onnx/data.h"

/* Calls of functions and graphs in graphs, together. */
enum { HN_ONNX_NESTING = 64 };

/* A FunctionProto. Formal names point into the loader's scratch arena. */
typedef struct hn_onnx_function {
  hn_pb body;
  const char *domain, *name, *overload;
  HN_VEC(const char *) inputs, outputs;
  HN_VEC(hn_opset) opsets;
  uint32_t calls; /* expanded so far */
} hn_onnx_function;

typedef struct hn_onnx_loader {
  hn_model *model;
  hn_pb_source source;
  hn_onnx_data data;
  hn_onnx_files files;    /* become the model's at the end, whether loading succeeds or not */
  hn_arena scratch, node; /* node: of the NodeProtos that are being read */
  hn_map symbols;         /* name -> -dimension */
  hn_map functions;       /* key of hn_onnx_function_key -> hn_onnx_function */
  HN_VEC(hn_onnx_function *) function_list;
  uint32_t depth;
  uint64_t expanded_nodes, expanded_bytes; /* by functions, against files that grow exponentially */
  hn_map taken_names; /* of nodes, where there are functions -> how many have it, as a pointer */
} hn_onnx_loader;

/* One expansion of a function. */
typedef struct hn_onnx_call {
  hn_onnx_function *function;
  const hn_pb *node;                 /* the calling NodeProto, for its attributes */
  const struct hn_onnx_scope *scope; /* in which the call stands */
  const char *prefix;                /* of the names made inside */
  hn_map outputs;                    /* formal name -> value of the call */
} hn_onnx_call;

/* Where names are looked up. A function's body sees nothing of the graphs around the call. */
typedef struct hn_onnx_scope {
  const struct hn_onnx_scope *outer; /* NULL: main graph or function body */
  hn_graph *graph;
  hn_map *names;            /* NULL: the graph's own names are those of the file */
  const hn_onnx_call *call; /* NULL: not inside a function */
} hn_onnx_scope;

/* ---- load_graph.c */
/* Reads a GraphProto into the empty graph of `scope`. */
hone_status hn_onnx_load_graph(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope);
/* Looks a name up; *found NULL with true: a function's input that the call left out. */
bool hn_onnx_find(const hn_onnx_scope *scope, const char *name, hn_value **found);
/* Creates the values of all outputs of the nodes in field `number` of m, then the nodes. */
hone_status hn_onnx_load_nodes(hn_onnx_loader *l, hn_pb *m, uint32_t number, const hn_onnx_scope *scope);
/* Fills kind and descriptor from a ValueInfoProto; checks them against the value's constant. */
hone_status hn_onnx_load_type(hn_onnx_loader *l, hn_pb *m, hn_value *value);

/* Reads a TypeProto of a tensor, sequence or optional. */
hone_status hn_onnx_load_type_proto(hn_onnx_loader *l, hn_pb *m, hone_dtype *dtype);

/* ---- load_node.c */
hone_status hn_onnx_load_node(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope);

/* ---- load_attr.c */
hone_status hn_onnx_load_attr(hn_onnx_loader *l, hn_pb *m, hone_node *node, const hn_onnx_scope *scope,
                              const char *rename, int64_t must_be);

/* ---- load_function.c */
hone_status hn_onnx_load_function(hn_onnx_loader *l, hn_pb *m);
/* The function that node m calls, *out; NULL: the model has no such function. */
hone_status hn_onnx_function_find(hn_onnx_loader *l, const hn_pb *m, const char *domain, const char *name,
                                  const char *overload, hn_onnx_function **out);
/* Puts the function's nodes where the call stands. in and out are the call's values (NULL: left out). */
hone_status hn_onnx_expand(hn_onnx_loader *l, hn_onnx_function *f, const hn_pb *node, const char *node_name,
                           hn_value *const *in, size_t n_in, hn_value *const *out, size_t n_out,
                           const hn_onnx_scope *scope);
/* Reads an OperatorSetIdProto. */
hone_status hn_onnx_opset(hn_pb *m, hn_arena *arena, hn_opset *out);
/* "" for ONNX's own domain under either of its names. */
const char *hn_onnx_domain(const char *domain);

/* ---- sniff.c */
/* Says what a file is that is surely no ONNX model ("an HTML page: the download failed"), or NULL. */
const char *hn_onnx_sniff(const uint8_t *data, size_t size);

#endif
