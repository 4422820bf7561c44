#include "onnx/good_models.h"

#include <stdio.h>
#include <string.h>

static pb *attr(const char *name, int type) {
  return pb_int(pb_text(pb_new(), HN_ONNX_ATTRIBUTE_NAME, name), HN_ONNX_ATTRIBUTE_TYPE, type);
}
static pb *node_with(const char *op, const char *in, const char *out, const pb *attribute) {
  return pb_put(pb_node(op, in, out), HN_ONNX_NODE_ATTRIBUTE, attribute);
}
static pb *input(pb *g, const char *name, int type, const char *dims) {
  return pb_put(g, HN_ONNX_GRAPH_INPUT, pb_value(name, type, dims));
}
static pb *output(pb *g, const char *name, int type, const char *dims) {
  return pb_put(g, HN_ONNX_GRAPH_OUTPUT, pb_value(name, type, dims));
}
static pb *node(pb *g, const pb *n) { return pb_put(g, HN_ONNX_GRAPH_NODE, n); }
static pb *initializer(pb *g, const pb *t) { return pb_put(g, HN_ONNX_GRAPH_INITIALIZER, t); }

static pb *plain(void) {
  pb *g = node(pb_graph(), pb_text(pb_node("Relu", "x", "y"), HN_ONNX_NODE_NAME, "relu"));
  return pb_text(pb_model(g), HN_ONNX_MODEL_PRODUCER_NAME, "test");
}

/* Constant nodes in all their forms, one output each. */
static pb *constants(void) {
  pb *g = pb_new();
  node(g, node_with("Constant", "", "t",
                    pb_put(attr("value", 4), HN_ONNX_ATTRIBUTE_T, pb_floats("v", "2 2", 4))));
  node(g, node_with("Constant", "", "f", pb_float(attr("value_float", 1), HN_ONNX_ATTRIBUTE_F, 2.5f)));
  node(g, node_with("Constant", "", "i", pb_int(attr("value_int", 2), HN_ONNX_ATTRIBUTE_I, -7)));
  node(g, node_with("Constant", "", "s", pb_bytes(attr("value_string", 3), HN_ONNX_ATTRIBUTE_S, "a\0b", 3)));
  node(g, node_with("Constant", "", "fs",
                    pb_float(pb_float(attr("value_floats", 6), HN_ONNX_ATTRIBUTE_FLOATS, 1),
                             HN_ONNX_ATTRIBUTE_FLOATS, 2)));
  node(g, node_with("Constant", "", "is",
                    pb_bytes(attr("value_ints", 7), HN_ONNX_ATTRIBUTE_INTS, "\x01\x02\xac\x02", 4)));
  node(g, node_with("Constant", "", "ss",
                    pb_text(pb_text(attr("value_strings", 8), HN_ONNX_ATTRIBUTE_STRINGS, ""),
                            HN_ONNX_ATTRIBUTE_STRINGS, "two")));
  output(g, "t", 1, "2 2"), output(g, "f", 1, ""), output(g, "i", 7, ""), output(g, "s", 8, ""),
      output(g, "fs", 1, "2");
  output(g, "is", 7, "3"), output(g, "ss", 8, "2");
  return pb_model(g);
}

/* Elements stored one by one in the field of their type, packed and not. */
static pb *typed_data(void) {
  pb *g = pb_new();
  static const struct {
    const char *name;
    int type;
    uint32_t field;
    int64_t a, b;
  } ints[] = {{"u8", 2, 5, 0, 255},          {"i8", 3, 5, -128, 127},        {"u16", 4, 5, 0, 65535},
              {"i16", 5, 5, -32768, 32767},  {"i32", 6, 5, INT32_MIN, 7},    {"i64", 7, 7, INT64_MIN, 7},
              {"bool", 9, 5, 0, 1},          {"f16", 10, 5, 0x3c00, 0xc000}, {"u32", 12, 11, 0, UINT32_MAX},
              {"u64", 13, 11, 0, INT64_MAX}, {"bf16", 16, 5, 0x3f80, 0xc000}};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
    pb *t = pb_tensor(ints[i].name, ints[i].type, "2", NULL, 0);
    initializer(g, pb_int(pb_int(t, ints[i].field, ints[i].a), ints[i].field, ints[i].b));
    output(g, ints[i].name, ints[i].type, "2");
  }
  pb *packed = pb_varint(pb_varint(pb_varint(pb_new(), 1), 300), UINT64_MAX);
  initializer(
      g, pb_bytes(pb_tensor("packed", 7, "3", NULL, 0), HN_ONNX_TENSOR_INT64_DATA, packed->ptr, packed->len));
  static const float two[] = {1.5f, -2};
  static const double doubles[] = {1.5, -2};
  initializer(g, pb_bytes(pb_tensor("f32", 1, "2", NULL, 0), HN_ONNX_TENSOR_FLOAT_DATA, two, sizeof two));
  initializer(g, pb_float(pb_float(pb_tensor("f32one", 1, "2", NULL, 0), HN_ONNX_TENSOR_FLOAT_DATA, 1.5f),
                          HN_ONNX_TENSOR_FLOAT_DATA, -2));
  initializer(
      g, pb_bytes(pb_tensor("f64", 11, "2", NULL, 0), HN_ONNX_TENSOR_DOUBLE_DATA, doubles, sizeof doubles));
  initializer(g, pb_text(pb_text(pb_tensor("str", 8, "2", NULL, 0), HN_ONNX_TENSOR_STRING_DATA, "one"),
                         HN_ONNX_TENSOR_STRING_DATA, ""));
  initializer(g, pb_tensor("none", 1, "0 4", NULL, 0));
  initializer(g, pb_tensor("odd", 9, "3", "\0\2\1", 3)); /* bools that are not 0 or 1 */
  output(g, "packed", 7, "3"), output(g, "f32", 1, "2"), output(g, "f32one", 1, "2"),
      output(g, "f64", 11, "2");
  output(g, "str", 8, "2"), output(g, "none", 1, "0 4"), output(g, "odd", 9, "3");
  return pb_model(g);
}

static pb *unsorted(void) {
  pb *g = pb_graph();
  node(g, pb_node("Neg", "c", "y"));
  node(g, pb_node("Add", "b a", "c"));
  node(g, pb_node("Abs", "a", "b"));
  node(g, pb_node("Relu", "x", "a"));
  return pb_model(g);
}

static pb *symbols(void) {
  pb *g = output(input(pb_new(), "x", 1, "N 3 H ?"), "y", 1, "N 3 H ?");
  return pb_model(node(input(g, "z", 1, "N -1 None None"), pb_node("Relu", "x", "y")));
}

static pb *optional_operands(void) {
  pb *g = pb_graph();
  node(g, pb_node("Clip", "x - max", "y"));
  return pb_model(initializer(g, pb_floats("max", "", 1)));
}

/* The output that every Unique has is left out. */
static pb *needless_outputs(void) {
  pb *g = node(pb_graph(), pb_node("Unique", "x", "- - places"));
  return pb_model(node(g, node_with("Cast", "places", "y", pb_attr_int("to", 1))));
}

static pb *all(float v) { /* three of them, called by their number */
  char name[16];
  snprintf(name, sizeof name, "%g", (double)v);
  return pb_tensor(name, 1, "3", (const float[]){v, v, v}, 3 * sizeof v);
}

/* BatchNormalization of opset 9, which trains where it names more outputs than one. */
static pb *batch_norm(const char *outputs) {
  pb *g = node(pb_graph(), node_with("BatchNormalization", "x 1 0 1 4", outputs,
                                     pb_float(attr("epsilon", 1), HN_ONNX_ATTRIBUTE_F, 0)));
  initializer(initializer(initializer(g, all(0)), all(1)), all(4));
  pb *m = pb_put(pb_int(pb_new(), HN_ONNX_MODEL_IR_VERSION, 8), HN_ONNX_MODEL_GRAPH, g);
  return pb_put(m, HN_ONNX_MODEL_OPSET_IMPORT, pb_int(pb_new(), HN_ONNX_OPSET_VERSION, 9));
}
static pb *batch_norm_infers(void) { return batch_norm("y - - - -"); }
static pb *batch_norm_trains(void) { return batch_norm("y - unread - -"); }

/* An initializer that is an input, too: a default from IR 4 on, a plain constant before. */
static pb *default_input(void) {
  pb *g = input(pb_graph(), "w", 1, "3");
  return pb_model(initializer(node(g, pb_node("Add", "x w", "y")), pb_floats("w", "3", 3)));
}
static pb *ir_3(void) {
  pb *m = default_input();
  return pb_int(m, HN_ONNX_MODEL_IR_VERSION, 3);
}

static pb *body(const char *op, const char *in, const char *out) {
  return output(node(pb_text(pb_new(), HN_ONNX_GRAPH_NAME, op), pb_node(op, in, out)), out, 1, NULL);
}

/* If whose branches capture x; one hands an outer value back as it is. */
static pb *branches(void) {
  pb *n = node_with("If", "c", "y", pb_attr_graph("then_branch", body("Relu", "x", "r")));
  pb_put(n, HN_ONNX_NODE_ATTRIBUTE,
         pb_attr_graph("else_branch", output(pb_text(pb_new(), HN_ONNX_GRAPH_NAME, "e"), "x", 1, NULL)));
  return pb_model(node(input(pb_graph(), "c", 9, ""), n));
}

static pb *loop(void) {
  pb *b =
      input(input(input(pb_text(pb_new(), HN_ONNX_GRAPH_NAME, "b"), "i", 7, ""), "go", 9, ""), "v", 1, "2 3");
  node(b, pb_node("Identity", "go", "go_on"));
  node(b, pb_node("Add", "v x", "v2"));
  output(output(b, "go_on", 9, ""), "v2", 1, "2 3");
  pb *g = initializer(pb_graph(), pb_tensor("trips", 7, "", "\3\0\0\0\0\0\0", 8));
  return pb_model(node(g, node_with("Loop", "trips - x", "y", pb_attr_graph("body", b))));
}

/* Calls that nest, pass attributes by reference and by default, leave an input out, hand an input back. */
static pb *functions(void) {
  pb *leaky = pb_function("f", "Leaky", "a unused", "b same");
  pb *ref = pb_text(attr("alpha", 1), HN_ONNX_ATTRIBUTE_REF_ATTR_NAME, "slope");
  pb_put(leaky, HN_ONNX_FUNCTION_NODE, node_with("LeakyRelu", "a", "b", ref));
  pb_put(leaky, HN_ONNX_FUNCTION_NODE, pb_node("Identity", "a", "tmp"));
  pb_put(leaky, HN_ONNX_FUNCTION_NODE, pb_node("Relu", "tmp", "same"));
  pb_put(leaky, HN_ONNX_FUNCTION_ATTRIBUTE_PROTO, pb_float(attr("slope", 1), HN_ONNX_ATTRIBUTE_F, 0.25f));
  pb *outer = pb_function("f", "Outer", "p", "q p");
  pb *through = pb_text(attr("slope", 1), HN_ONNX_ATTRIBUTE_REF_ATTR_NAME, "s");
  pb *call = pb_text(node_with("Leaky", "p", "t", through), HN_ONNX_NODE_DOMAIN, "f");
  pb_put(outer, HN_ONNX_FUNCTION_NODE, call);
  pb_put(outer, HN_ONNX_FUNCTION_NODE, pb_text(pb_node("Leaky", "t", "q"), HN_ONNX_NODE_DOMAIN, "f"));
  pb *g = pb_graph(),
     *first = pb_text(node_with("Outer", "x", "m n", pb_float(attr("s", 1), HN_ONNX_ATTRIBUTE_F, 0.5f)),
                      HN_ONNX_NODE_DOMAIN, "f");
  node(g, pb_text(first, HN_ONNX_NODE_NAME, "call"));
  node(g, pb_text(pb_text(pb_node("Outer", "m", "k"), HN_ONNX_NODE_DOMAIN, "f"), HN_ONNX_NODE_NAME, "call"));
  node(g, pb_node("Add", "k n", "y"));
  return pb_put(pb_put(pb_model(g), HN_ONNX_MODEL_FUNCTIONS, outer), HN_ONNX_MODEL_FUNCTIONS, leaky);
}

/* Nodes that are called as what stands beside them expands to, before the call and behind it. */
static pb *function_names(void) {
  pb *f = pb_put(pb_function("f", "F", "a", "b"), HN_ONNX_FUNCTION_NODE,
                 pb_text(pb_node("Neg", "a", "b"), HN_ONNX_NODE_NAME, "n"));
  pb *g = node(pb_graph(), pb_text(pb_node("Neg", "x", "u"), HN_ONNX_NODE_NAME, "F/n"));
  node(g, pb_text(pb_node("F", "u", "v"), HN_ONNX_NODE_DOMAIN, "f"));
  node(g, pb_text(pb_node("F", "v", "w"), HN_ONNX_NODE_DOMAIN, "f"));
  node(g, pb_text(pb_node("Neg", "w", "y"), HN_ONNX_NODE_NAME, "F/n_2"));
  return pb_put(pb_model(g), HN_ONNX_MODEL_FUNCTIONS, f);
}

/* A function whose body holds an If that captures the function's input; called twice. */
static pb *function_with_body(void) {
  pb *n = node_with("If", "c", "b", pb_attr_graph("then_branch", body("Relu", "a", "r")));
  pb_put(n, HN_ONNX_NODE_ATTRIBUTE, pb_attr_graph("else_branch", body("Neg", "a", "r")));
  pb *f = pb_put(pb_function("f", "Choose", "a c", "b"), HN_ONNX_FUNCTION_NODE, n);
  pb *g = input(pb_graph(), "c", 9, "");
  node(g, pb_text(pb_node("Choose", "x c", "r"), HN_ONNX_NODE_DOMAIN, "f"));
  node(g, pb_text(pb_node("Choose", "r c", "y"), HN_ONNX_NODE_DOMAIN, "f"));
  return pb_put(pb_model(g), HN_ONNX_MODEL_FUNCTIONS, f);
}

static pb *overload(void) {
  pb *m = node(pb_graph(), pb_text(pb_text(pb_node("F", "x", "y"), HN_ONNX_NODE_DOMAIN, "f"),
                                   HN_ONNX_NODE_OVERLOAD, "two"));
  pb *one = pb_put(pb_function("f", "F", "a", "b"), HN_ONNX_FUNCTION_NODE, pb_node("Neg", "a", "b"));
  pb *two = pb_put(pb_text(pb_function("f", "F", "a", "b"), HN_ONNX_FUNCTION_OVERLOAD, "two"),
                   HN_ONNX_FUNCTION_NODE, pb_node("Abs", "a", "b"));
  return pb_put(pb_put(pb_model(m), HN_ONNX_MODEL_FUNCTIONS, one), HN_ONNX_MODEL_FUNCTIONS, two);
}

/* Things that change nothing: documentation, metadata, annotations, unknown fields where that is allowed. */
static pb *chatter(void) {
  pb *m = plain();
  pb_text(m, HN_ONNX_MODEL_DOC_STRING, "a model");
  pb_put(m, HN_ONNX_MODEL_METADATA_PROPS, pb_text(pb_text(pb_new(), 1, "key"), 2, "value"));
  pb_bytes(m, HN_ONNX_MODEL_TRAINING_INFO, "whatever", 8);
  return pb_text(pb_int(m, 99, 5), 1000, "newer");
}
static pb *newer_ir(void) { return pb_int(plain(), HN_ONNX_MODEL_IR_VERSION, 99); }
static pb *onnx_domain(void) { /* "ai.onnx" is another name of "" */
  pb *m = pb_put(pb_int(pb_new(), 1, 8), 7,
                 node(pb_graph(), pb_text(pb_node("Relu", "x", "y"), HN_ONNX_NODE_DOMAIN, "ai.onnx")));
  return pb_put(m, 8, pb_int(pb_text(pb_new(), 1, "ai.onnx"), 2, 17));
}

#define CASE(name)                                                                                           \
  { #name, name }
const good_model good_models[] = {
    CASE(plain),
    CASE(constants),
    CASE(typed_data),
    CASE(unsorted),
    CASE(symbols),
    CASE(optional_operands),
    CASE(default_input),
    CASE(ir_3),
    CASE(branches),
    CASE(loop),
    CASE(functions),
    CASE(function_with_body),
    CASE(function_names),
    CASE(overload),
    CASE(chatter),
    CASE(newer_ir),
    CASE(onnx_domain),
    CASE(needless_outputs),
    CASE(batch_norm_infers),
    CASE(batch_norm_trains),
};
const size_t n_good_models = sizeof good_models / sizeof *good_models;

pb *make_good_model(const char *name) {
  for (size_t i = 0; i < n_good_models; i++)
    if (strcmp(good_models[i].name, name) == 0) return good_models[i].make();
  return NULL;
}
