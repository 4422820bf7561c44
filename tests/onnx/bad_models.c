/* The cases of the golden file tests/golden/bad_models.txt: one function, one line in the list at the end. */
#include "onnx/bad_models.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOUR_MB = 4 << 20 };

/* A model of one graph with one part added. */
static pb *with(uint32_t field, const pb *part) { return pb_model(pb_put(pb_graph(), field, part)); }
static pb *with_node(const pb *node) { return with(HN_ONNX_GRAPH_NODE, node); }
static pb *relu(void) { return pb_node("Relu", "x", "y"); }
static pb *good(void) { return with_node(relu()); }
static pb *with_attr(const pb *attr) { return with_node(pb_put(relu(), HN_ONNX_NODE_ATTRIBUTE, attr)); }
static pb *bytes(const char *s, size_t n) { return pb_raw(pb_new(), s, n); }
#define BYTES(s) bytes(s, sizeof(s) - 1)

/* x + w -> y, with w as given. */
static pb *with_weight(const pb *tensor) {
  pb *g = pb_put(pb_graph(), HN_ONNX_GRAPH_NODE, pb_node("Add", "x w", "y"));
  return pb_model(pb_put(g, HN_ONNX_GRAPH_INITIALIZER, tensor));
}

static pb *attr_type(const char *name, int type) {
  return pb_int(pb_text(pb_new(), HN_ONNX_ATTRIBUTE_NAME, name), HN_ONNX_ATTRIBUTE_TYPE, type);
}

/* ---- no ONNX at all */
static pb *empty(void) { return pb_new(); }
static pb *html(void) { return BYTES("<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"); }
static pb *html_bom(void) { return BYTES("\357\273\277  \r\n<HTML><head></head></HTML>"); }
static pb *xml(void) { return BYTES("<?xml version=\"1.0\"?><net name=\"n\"/>"); }
static pb *lfs(void) {
  return BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 102576593\n");
}
static pb *json(void) { return BYTES("{\"message\":\"Not Found\"}"); }
static pb *zip(void) { return BYTES("PK\003\004\024\0\0\0\0\0archive/data.pkl"); }
static pb *pickle(void) { return BYTES("\200\002}q\0(X\005\0\0\0epoch"); }
static pb *gzip(void) { return BYTES("\037\213\010\0\0\0\0\0\0\003"); }
static pb *hdf5(void) { return BYTES("\211HDF\r\n\032\n\0\0\0\0"); }
static pb *tflite(void) { return BYTES("\034\0\0\0TFL3\024\0\040\0"); }
static pb *ort(void) { return BYTES("\020\0\0\0ORTM\0\0\0\0"); }
static pb *zeros(void) { return pb_repeat(pb_new(), "\0", 1, 4096); }
static pb *text(void) { return BYTES("Access denied. Please log in to download this file, thank you.\n\n"); }
static pb *garbage(void) {
  hn_rng r = {12345};
  pb *b = pb_new();
  for (int i = 0; i < 500; i++) {
    uint64_t v = hn_rng_u64(&r);
    pb_raw(b, &v, sizeof v);
  }
  return b;
}

/* ---- damaged wire format */
static pb *truncated(void) {
  pb *m = pb_model(pb_put(pb_put(pb_graph(), HN_ONNX_GRAPH_NODE, pb_node("Add", "x w", "y")),
                          HN_ONNX_GRAPH_INITIALIZER, pb_floats("w", "1000", 1000)));
  m->len /= 2;
  return m;
}
static pb *truncated_last_byte(void) {
  pb *m = good();
  m->len--;
  return m;
}
static pb *truncated_varint(void) { return pb_raw(pb_int(pb_new(), 1, 8), "\x28\xff\xff", 3); }
static pb *long_varint(void) { return BYTES("\x08\x08\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); }
static pb *huge_length(void) { return BYTES("\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x0a"); }
static pb *field_zero(void) { return BYTES("\x08\x08\x00\x01"); }
static pb *group(void) { return BYTES("\x08\x08\x0b\x0c"); }
static pb *wrong_wire_type(void) { return BYTES("\x08\x08\x38\x01"); }
static pb *inner_length(void) { return pb_model(pb_raw(pb_graph(), "\x0a\x20\x0a\x01x", 5)); }
static pb *unknown_field(void) { return with_node(pb_int(relu(), 29, 1)); }
static pb *ragged_floats(void) {
  pb *a = pb_bytes(attr_type("alpha", 6), HN_ONNX_ATTRIBUTE_FLOATS, "\0\0\0\0\0", 5);
  return with_attr(a);
}
static pb *cut_ints(void) {
  return with_attr(pb_bytes(attr_type("axes", 7), HN_ONNX_ATTRIBUTE_INTS, "\x01\x80", 2));
}
static pb *deep_graphs(void) {
  pb *g = pb_put(pb_graph(), HN_ONNX_GRAPH_NODE, relu());
  for (int i = 0; i < 1000; i++) {
    pb *outer = pb_graph(), *n = pb_node("If", "x", "y");
    pb_put(n, HN_ONNX_NODE_ATTRIBUTE, pb_attr_graph("then_branch", g));
    g = pb_put(outer, HN_ONNX_GRAPH_NODE, n);
  }
  return pb_model(g);
}
static pb *deep_types(void) {
  pb *t = pb_put(pb_new(), HN_ONNX_TYPE_TENSOR_TYPE, pb_int(pb_new(), 1, 1));
  for (int i = 0; i < 1000; i++) t = pb_put(pb_new(), HN_ONNX_TYPE_SEQUENCE_TYPE, pb_put(pb_new(), 1, t));
  return with(HN_ONNX_GRAPH_INPUT, pb_put(pb_text(pb_new(), 1, "s"), HN_ONNX_VALUE_TYPE, t));
}

/* ---- four megabytes of next to nothing */
static pb *flood(const char *field) {
  return pb_model(pb_repeat(pb_put(pb_graph(), HN_ONNX_GRAPH_NODE, relu()), field, 2, FOUR_MB / 2));
}
static pb *empty_nodes(void) { return flood("\x0a\0"); }
static pb *empty_initializers(void) { return flood("\x2a\0"); }
static pb *empty_inputs(void) { return flood("\x5a\0"); }
static pb *empty_value_infos(void) { return flood("\x6a\0"); }
static pb *empty_attributes(void) { return with_node(pb_repeat(relu(), "\x2a\0", 2, FOUR_MB / 2)); }
static pb *empty_node_inputs(void) { return with_node(pb_repeat(relu(), "\x0a\0", 2, FOUR_MB / 2)); }
static pb *empty_opsets(void) { return pb_repeat(good(), "\x42\0", 2, FOUR_MB / 2); }
static pb *empty_functions(void) { return pb_repeat(good(), "\xca\x01\0", 3, FOUR_MB / 3); }
static pb *empty_strings(void) { return with_attr(pb_repeat(attr_type("s", 8), "\x4a\0", 2, FOUR_MB / 2)); }
static pb *many_ints(void) { /* packed: four million numbers of one byte */
  pb *list = pb_repeat(pb_new(), "\x01", 1, FOUR_MB);
  return with_attr(pb_bytes(attr_type("axes", 7), HN_ONNX_ATTRIBUTE_INTS, list->ptr, list->len));
}
static pb *empty_dims(void) {
  pb *shape = pb_repeat(pb_new(), "\x0a\0", 2, FOUR_MB / 2);
  pb *type = pb_put(pb_new(), HN_ONNX_TYPE_TENSOR_TYPE, pb_put(pb_int(pb_new(), 1, 1), 2, shape));
  return with(HN_ONNX_GRAPH_INPUT, pb_put(pb_text(pb_new(), 1, "s"), 2, type));
}
static pb *many_attributes(void) {
  pb *n = relu();
  for (int i = 0; i < 2000; i++) {
    char name[16];
    snprintf(name, sizeof name, "a%d", i);
    pb_put(n, HN_ONNX_NODE_ATTRIBUTE, pb_attr_int(name, i));
  }
  return with_node(n);
}

/* ---- the model's head */
static pb *no_graph(void) { return pb_int(pb_new(), HN_ONNX_MODEL_IR_VERSION, 8); }
static pb *two_graphs(void) { return pb_put(good(), HN_ONNX_MODEL_GRAPH, pb_graph()); }
static pb *no_ir(void) { return pb_put(pb_put(pb_new(), 7, pb_graph()), 8, pb_int(pb_new(), 2, 17)); }
static pb *old_ir(void) { return pb_int(good(), HN_ONNX_MODEL_IR_VERSION, 2); }
static pb *no_opset(void) { return pb_put(pb_int(pb_new(), 1, 8), 7, pb_put(pb_graph(), 1, relu())); }
static pb *two_opsets(void) { return pb_put(good(), 8, pb_int(pb_new(), 2, 12)); }
static pb *opset_zero(void) { return pb_put(good(), 8, pb_int(pb_text(pb_new(), 1, "d"), 2, 0)); }
static pb *future_opset(void) {
  return pb_put(pb_put(pb_int(pb_new(), 1, 8), 7, pb_put(pb_graph(), 1, relu())), 8,
                pb_int(pb_new(), 2, 1000));
}

static pb *cast_by_number(void) {
  const pb *n = pb_put(pb_node("Cast", "x", "y"), HN_ONNX_NODE_ATTRIBUTE, pb_attr_int("to", 1));
  return pb_put(pb_put(pb_int(pb_new(), 1, 8), 7, pb_put(pb_graph(), 1, n)), 8, pb_int(pb_new(), 2, 5));
}

/* ---- names and edges */
static pb *no_op_type(void) { return with_node(pb_node("", "x", "y")); }
static pb *missing_tensor(void) { return with_node(pb_node("Add", "x nowhere", "y")); }
static pb *output_twice(void) {
  return pb_model(pb_put(pb_put(pb_graph(), 1, relu()), 1, pb_node("Abs", "x", "y")));
}
static pb *output_is_input(void) { return with_node(pb_node("Relu", "x", "x")); }
static pb *output_is_initializer(void) {
  return pb_model(pb_put(pb_put(pb_graph(), 1, relu()), 5, pb_floats("y", "2 3", 6)));
}
static pb *input_twice(void) { return with(HN_ONNX_GRAPH_INPUT, pb_value("x", 1, "2 3")); }
static pb *input_without_type(void) {
  return pb_model(pb_put(pb_put(pb_graph(), 1, relu()), HN_ONNX_GRAPH_INPUT, pb_value("z", 0, "2 3")));
}
static pb *two_weights(void) {
  pb *g = pb_put(pb_graph(), 1, pb_node("Add", "x w", "y"));
  return pb_model(pb_put(pb_put(g, 5, pb_floats("w", "3", 3)), 5, pb_floats("w", "3", 3)));
}
static pb *no_output(void) {
  return pb_model(pb_put(pb_put(pb_new(), 11, pb_value("x", 1, "2")), 1, relu()));
}
static pb *output_from_nowhere(void) { return pb_model(pb_graph()); }
static pb *self_cycle(void) { return with_node(pb_node("Add", "x y", "y")); }
static pb *cycle(void) {
  pb *g = pb_put(pb_graph(), 1, pb_node("Add", "x c", "a"));
  return pb_model(pb_put(pb_put(pb_put(g, 1, pb_node("Relu", "a", "b")), 1, pb_node("Abs", "b", "c")), 1,
                         pb_node("Neg", "c", "y")));
}
static pb *body_cycle(void) { /* an If whose body reads what the If makes */
  pb *body = pb_put(pb_put(pb_new(), 1, pb_node("Relu", "y", "z")), 12, pb_value("z", 1, NULL));
  pb *n = pb_put(pb_put(pb_node("If", "x", "y"), 5, pb_attr_graph("then_branch", body)), 5,
                 pb_attr_graph("else_branch", body));
  return with_node(n);
}
static pb *body_reads_nothing(void) {
  pb *body = pb_put(pb_put(pb_new(), 1, pb_node("Relu", "q", "z")), 12, pb_value("z", 1, NULL));
  return with_node(pb_put(pb_node("If", "x", "y"), 5, pb_attr_graph("then_branch", body)));
}
static pb *name_not_utf8(void) { return with_node(pb_bytes(relu(), HN_ONNX_NODE_NAME, "a\xff\xfe", 3)); }
static pb *name_with_nul(void) { return with_node(pb_bytes(relu(), HN_ONNX_NODE_INPUT, "x\0y", 3)); }
static pb *name_with_newline(void) {
  return with_node(pb_text(pb_node("Nope", "x", "y"), HN_ONNX_NODE_NAME, "first\nerror: second\033[31m"));
}
static pb *long_name(void) {
  pb *name = pb_repeat(pb_new(), "n", 1, 100000);
  return with_node(pb_bytes(relu(), HN_ONNX_NODE_INPUT, name->ptr, name->len));
}
static pb *value_without_name(void) { return with(HN_ONNX_GRAPH_INPUT, pb_value("", 1, "2")); }
static pb *initializer_without_name(void) { return with_weight(pb_floats("", "3", 3)); }

/* ---- operators */
static pb *unknown_operators(void) {
  pb *g = pb_put(pb_graph(), 1, pb_node("Frobnicate", "x", "a"));
  pb_put(g, 1,
         pb_text(pb_text(pb_node("FancyOp", "a", "b"), HN_ONNX_NODE_DOMAIN, "com.example"), HN_ONNX_NODE_NAME,
                 "n2"));
  return pb_model(pb_put(g, 1, pb_node("Twist", "b", "y")));
}
static pb *unknown_attribute(void) { return with_attr(pb_attr_int("sparkle", 1)); }
static pb *attribute_of_wrong_type(void) {
  pb *n = pb_node("LeakyRelu", "x", "y");
  return with_node(pb_put(n, HN_ONNX_NODE_ATTRIBUTE, pb_attr_int("alpha", 1)));
}
static pb *too_few_inputs(void) { return with_node(pb_node("Add", "x", "y")); }
static pb *too_many_outputs(void) { return with_node(pb_node("Relu", "x", "y z")); }
static pb *shapes_do_not_fit(void) { return with_weight(pb_floats("w", "5", 5)); }
static pb *declared_output_type(void) {
  pb *g = pb_put(pb_put(pb_new(), 11, pb_value("x", 1, "2 3")), 1, relu());
  return pb_model(pb_put(g, 12, pb_value("y", 7, "2 3")));
}

/* Two inputs a and b of the shapes given, through one node with one integer attribute (NULL: none). */
static pb *two_inputs(const char *op, const char *a, int b_type, const char *b, const char *attr,
                      int64_t value) {
  pb *g = pb_put(pb_put(pb_new(), 11, pb_value("a", 1, a)), 11, pb_value("b", b_type, b)),
     *n = pb_node(op, "a b", "y");
  if (attr) pb_put(n, HN_ONNX_NODE_ATTRIBUTE, pb_attr_int(attr, value));
  return pb_model(pb_put(pb_put(g, 1, n), 12, pb_value("y", 1, NULL)));
}
static pb *operand_types(void) { return two_inputs("Add", "4", 7, "4", NULL, 0); }
static pb *matmul_mismatch(void) { return two_inputs("MatMul", "4 5", 1, "6 7", NULL, 0); }
static pb *conv_channels(void) { return two_inputs("Conv", "1 4 8 8", 1, "8 3 3 3", NULL, 0); }
static pb *conv_kernel_too_large(void) { return two_inputs("Conv", "1 3 2 2", 1, "8 3 5 5", NULL, 0); }
static pb *conv_groups(void) { return two_inputs("Conv", "1 4 8 8", 1, "8 1 3 3", "group", 3); }
static pb *conv_group_zero(void) { return two_inputs("Conv", "1 4 8 8", 1, "8 1 3 3", "group", 0); }
static pb *axis_out_of_range(void) {
  return with_node(pb_put(pb_node("Softmax", "x", "y"), 5, pb_attr_int("axis", 7)));
}
static pb *output_left_out(void) {
  pb *g = pb_put(pb_graph(), HN_ONNX_GRAPH_NODE, relu());
  pb *nothing = pb_text(pb_node("Relu", "x", ""), HN_ONNX_NODE_OUTPUT, "");
  return pb_model(pb_put(g, HN_ONNX_GRAPH_NODE, nothing));
}
static pb *too_many_inputs(void) { return with_node(pb_node("Relu", "x x x", "y")); }
/* Each value has eight readers, which are one: what reads it in the end is asked once. */
static pb *reordered_sums(void) {
  static const char domain[] = "com.microsoft.nchwc";
  pb *g = pb_put(pb_graph(), 1, pb_text(pb_node("ReorderInput", "x", "v0"), HN_ONNX_NODE_DOMAIN, domain));
  for (int i = 0; i < 40; i++) {
    char in[64], out[8];
    snprintf(in, sizeof in, "v%d v%d v%d v%d v%d v%d v%d v%d", i, i, i, i, i, i, i, i);
    snprintf(out, sizeof out, "v%d", i + 1);
    pb_put(g, 1, pb_node("Sum", in, out));
  }
  pb *last = pb_text(pb_node("ReorderOutput", "v40", "y"), HN_ONNX_NODE_DOMAIN, domain);
  return pb_put(pb_model(pb_put(g, 1, pb_put(last, HN_ONNX_NODE_ATTRIBUTE, pb_attr_int("channels", 3)))), 8,
                pb_int(pb_text(pb_new(), 1, domain), 2, 1));
}
static pb *blocks_given_out(void) {
  static const char domain[] = "com.microsoft.nchwc";
  pb *n = pb_text(pb_node("ReorderInput", "x", "y"), HN_ONNX_NODE_DOMAIN, domain);
  return pb_put(with_node(n), 8, pb_int(pb_text(pb_new(), 1, domain), 2, 1));
}
static pb *loop_without_body(void) { return with_node(pb_node("Loop", "- - x", "y")); }
static pb *sequence_input(void) {
  pb *element = pb_put(pb_new(), HN_ONNX_TYPE_TENSOR_TYPE, pb_int(pb_new(), 1, 1));
  pb *type = pb_put(pb_new(), HN_ONNX_TYPE_SEQUENCE_TYPE, pb_put(pb_new(), 1, element));
  pb *g = pb_put(pb_new(), 11, pb_put(pb_text(pb_new(), 1, "s"), 2, type));
  return pb_model(pb_put(pb_put(g, 1, pb_node("Identity", "s", "y")), 12, pb_value("y", 1, NULL)));
}

/* ---- attributes */
static pb *attribute_twice(void) {
  pb *n = pb_put(pb_node("Flatten", "x", "y"), 5, pb_attr_int("axis", 1));
  return with_node(pb_put(n, 5, pb_attr_int("axis", 0)));
}
static pb *attribute_without_name(void) { return with_attr(pb_attr_int("", 1)); }
static pb *attribute_without_type(void) { return with_attr(pb_text(pb_new(), 1, "a")); }
static pb *attribute_two_values(void) {
  return with_attr(pb_float(pb_attr_int("a", 1), HN_ONNX_ATTRIBUTE_F, 1));
}
static pb *attribute_contradiction(void) {
  return with_attr(pb_int(pb_attr_int("a", 1), HN_ONNX_ATTRIBUTE_TYPE, 1));
}
static pb *attribute_type_99(void) { return with_attr(attr_type("a", 99)); }
static pb *attribute_type_proto(void) { return with_attr(attr_type("a", 13)); }
static pb *reference_outside(void) {
  return with_attr(pb_text(attr_type("a", 2), HN_ONNX_ATTRIBUTE_REF_ATTR_NAME, "b"));
}

/* ---- tensors */
static const float six[6];
static pb *negative_dim(void) { return with_weight(pb_tensor("w", 1, "-3", six, 24)); }
static pb *overflowing_dims(void) {
  return with_weight(pb_tensor("w", 1, "4294967296 4294967296 4", six, 24));
}
static pb *huge_dims(void) { return with_weight(pb_tensor("w", 1, "1000000 1000000", six, 24)); }
static pb *nine_dims(void) { return with_weight(pb_tensor("w", 1, "1 1 1 1 1 1 1 1 1", six, 4)); }
static pb *declared_negative(void) { return with(HN_ONNX_GRAPH_INPUT, pb_value("z", 1, "2 -5")); }
static pb *declared_huge(void) {
  return with(HN_ONNX_GRAPH_INPUT, pb_value("z", 1, "100000000 100000000 100000000"));
}
static pb *declared_nine(void) { return with(HN_ONNX_GRAPH_INPUT, pb_value("z", 1, "1 1 1 1 1 1 1 1 1")); }
static pb *declared_type_99(void) { return with(HN_ONNX_GRAPH_INPUT, pb_value("z", 99, "1")); }
static pb *dtype_clash(void) {
  pb *g = pb_put(pb_put(pb_graph(), 11, pb_value("w", 7, "3")), 1, pb_node("Add", "x w", "y"));
  return pb_model(pb_put(g, 5, pb_floats("w", "3", 3)));
}
static pb *shape_clash(void) {
  pb *g = pb_put(pb_put(pb_graph(), 11, pb_value("w", 1, "4")), 1, pb_node("Add", "x w", "y"));
  return pb_model(pb_put(g, 5, pb_floats("w", "3", 3)));
}
static pb *data_short(void) { return with_weight(pb_tensor("w", 1, "2 3", six, 20)); }
static pb *data_long(void) { return with_weight(pb_tensor("w", 1, "2", six, 12)); }
static pb *no_data(void) { return with_weight(pb_tensor("w", 1, "3", NULL, 0)); }
static pb *data_in_wrong_field(void) {
  return with_weight(pb_int(pb_tensor("w", 1, "1", NULL, 0), HN_ONNX_TENSOR_INT64_DATA, 1));
}
static pb *data_in_two_places(void) {
  return with_weight(pb_float(pb_tensor("w", 1, "1", six, 4), HN_ONNX_TENSOR_FLOAT_DATA, 1));
}
static pb *number_too_large(void) {
  return with_weight(pb_int(pb_tensor("w", 2, "1", NULL, 0), HN_ONNX_TENSOR_INT32_DATA, 300));
}
static pb *no_data_type(void) { return with_weight(pb_tensor("w", 0, "1", six, 4)); }
static pb *float8(void) { return with_weight(pb_tensor("w", 17, "4", six, 4)); }
static pb *complex64(void) { return with_weight(pb_tensor("w", 14, "1", six, 8)); }
static pb *raw_strings(void) { return with_weight(pb_tensor("w", 8, "1", six, 4)); }
static pb *segment(void) {
  return with_weight(pb_put(pb_tensor("w", 1, "1", six, 4), HN_ONNX_TENSOR_SEGMENT, pb_int(pb_new(), 1, 0)));
}
static pb *sparse_initializer(void) {
  return with(HN_ONNX_GRAPH_SPARSE_INITIALIZER,
              pb_put(pb_new(), HN_ONNX_SPARSE_VALUES, pb_floats("w", "3", 3)));
}
static pb *sparse_input(void) {
  pb *type = pb_put(pb_new(), HN_ONNX_TYPE_SPARSE_TENSOR_TYPE, pb_int(pb_new(), 1, 1));
  return with(HN_ONNX_GRAPH_INPUT, pb_put(pb_text(pb_new(), 1, "s"), 2, type));
}

/* ---- external data */
static void entry(pb *t, const char *key, const char *value) {
  pb_put(t, HN_ONNX_TENSOR_EXTERNAL_DATA, pb_text(pb_text(pb_new(), 1, key), 2, value));
}
static pb *external(const char *location, const char *offset, const char *length) {
  pb *t = pb_int(pb_tensor("w", 1, "3", NULL, 0), HN_ONNX_TENSOR_DATA_LOCATION, 1);
  if (location) entry(t, "location", location);
  if (offset) entry(t, "offset", offset);
  if (length) entry(t, "length", length);
  return with_weight(t);
}
static void file(const char *path, size_t size) {
  FILE *f = fopen(path, "w");
  for (size_t i = 0; f && i < size; i++) fputc(0, f);
  if (!f || fclose(f) != 0) exit(6);
}
static pb *external_missing(void) { return external("gone.bin", NULL, NULL); }
static pb *external_outside(void) { return external("../outside.bin", NULL, NULL); }
static pb *external_absolute(void) { return external("/etc/passwd", NULL, NULL); }
static pb *external_symlink(void) {
  file("target.bin", 12);
  if (symlink("target.bin", "link.bin") != 0) exit(6);
  return external("link.bin", NULL, NULL);
}
static pb *external_hard_link(void) {
  file("one.bin", 12);
  if (link("one.bin", "two.bin") != 0) exit(6);
  return external("two.bin", NULL, NULL);
}
static pb *external_folder(void) {
  if (mkdir("folder.bin", 0777) != 0) exit(6);
  return external("folder.bin", NULL, NULL);
}
static pb *external_fifo(void) {
  if (mkfifo("fifo.bin", 0666) != 0) exit(6);
  return external("fifo.bin", NULL, NULL);
}
static pb *external_short(void) {
  file("short.bin", 8);
  return external("short.bin", NULL, NULL);
}
static pb *external_offset(void) {
  file("twelve.bin", 12);
  return external("twelve.bin", "4", "12");
}
static pb *external_huge_offset(void) { return external("twelve.bin", "18446744073709551615", "12"); }
static pb *external_bad_number(void) { return external("twelve.bin", "-4", NULL); }
static pb *external_length(void) { return external("twelve.bin", "0", "8"); }
static pb *external_no_location(void) { return external(NULL, "0", "12"); }

/* ---- functions */
static pb *call(const char *name, const char *in, const char *out) {
  return pb_text(pb_node(name, in, out), HN_ONNX_NODE_DOMAIN, "f");
}
static pb *calls_f(const pb *function) {
  return pb_put(with_node(call("F", "x", "y")), HN_ONNX_MODEL_FUNCTIONS, function);
}
static pb *f_of(const pb *node) {
  return pb_put(pb_function("f", "F", "a", "b"), HN_ONNX_FUNCTION_NODE, node);
}
static pb *function_recursion(void) { return calls_f(f_of(call("F", "a", "b"))); }
static pb *function_ring(void) {
  pb *g = pb_put(pb_function("f", "G", "a", "b"), HN_ONNX_FUNCTION_NODE, call("F", "a", "b"));
  return pb_put(calls_f(f_of(call("G", "a", "b"))), HN_ONNX_MODEL_FUNCTIONS, g);
}
static pb *function_bomb(void) {
  pb *m = with_node(call("F0", "x", "y"));
  for (int i = 0; i < 40; i++) {
    char name[16], next[16];
    snprintf(name, sizeof name, "F%d", i);
    snprintf(next, sizeof next, "F%d", i + 1);
    pb *f = pb_function("f", name, "a", "b");
    pb_put(f, HN_ONNX_FUNCTION_NODE, i < 39 ? call(next, "a", "c") : pb_node("Relu", "a", "c"));
    pb_put(f, HN_ONNX_FUNCTION_NODE, i < 39 ? call(next, "c", "b") : pb_node("Relu", "c", "b"));
    pb_put(m, HN_ONNX_MODEL_FUNCTIONS, f);
  }
  return m;
}
static pb *function_chain(void) {
  pb *m = with_node(call("F0", "x", "y"));
  for (int i = 0; i < 5000; i++) {
    char name[16], next[16];
    snprintf(name, sizeof name, "F%d", i);
    snprintf(next, sizeof next, "F%d", i + 1);
    pb *f = pb_function("f", name, "a", "b");
    pb_put(m, HN_ONNX_MODEL_FUNCTIONS,
           pb_put(f, HN_ONNX_FUNCTION_NODE, i < 4999 ? call(next, "a", "b") : pb_node("Relu", "a", "b")));
  }
  return m;
}
static pb *function_without_output(void) { return calls_f(f_of(pb_node("Relu", "a", "other"))); }
static pb *function_reads_outside(void) { return calls_f(f_of(pb_node("Add", "a x", "b"))); }
static pb *function_inputs(void) {
  return pb_put(with_node(call("F", "x x", "y")), HN_ONNX_MODEL_FUNCTIONS, f_of(pb_node("Relu", "a", "b")));
}
static pb *function_twice(void) {
  return pb_put(calls_f(f_of(pb_node("Relu", "a", "b"))), HN_ONNX_MODEL_FUNCTIONS,
                f_of(pb_node("Abs", "a", "b")));
}
static pb *function_bad_body(void) {
  return calls_f(f_of(pb_put(pb_node("Relu", "a", "b"), 5, pb_attr_int("", 1))));
}
static pb *unknown_overload(void) { return with_node(pb_text(relu(), HN_ONNX_NODE_OVERLOAD, "v2")); }

#define CASE(name)                                                                                           \
  { #name, name }
const bad_model bad_models[] = {
    CASE(empty),
    CASE(html),
    CASE(html_bom),
    CASE(xml),
    CASE(lfs),
    CASE(json),
    CASE(zip),
    CASE(pickle),
    CASE(gzip),
    CASE(hdf5),
    CASE(tflite),
    CASE(ort),
    CASE(zeros),
    CASE(text),
    CASE(garbage),
    CASE(truncated),
    CASE(truncated_last_byte),
    CASE(truncated_varint),
    CASE(long_varint),
    CASE(huge_length),
    CASE(field_zero),
    CASE(group),
    CASE(wrong_wire_type),
    CASE(inner_length),
    CASE(unknown_field),
    CASE(ragged_floats),
    CASE(cut_ints),
    CASE(deep_graphs),
    CASE(deep_types),
    CASE(empty_nodes),
    CASE(empty_initializers),
    CASE(empty_inputs),
    CASE(empty_value_infos),
    CASE(empty_attributes),
    CASE(empty_node_inputs),
    CASE(empty_opsets),
    CASE(empty_functions),
    CASE(empty_strings),
    CASE(empty_dims),
    CASE(many_ints),
    CASE(many_attributes),
    CASE(no_graph),
    CASE(two_graphs),
    CASE(no_ir),
    CASE(old_ir),
    CASE(no_opset),
    CASE(two_opsets),
    CASE(opset_zero),
    CASE(future_opset),
    CASE(cast_by_number),
    CASE(no_op_type),
    CASE(missing_tensor),
    CASE(output_twice),
    CASE(output_is_input),
    CASE(output_is_initializer),
    CASE(input_twice),
    CASE(input_without_type),
    CASE(two_weights),
    CASE(no_output),
    CASE(output_from_nowhere),
    CASE(self_cycle),
    CASE(cycle),
    CASE(body_cycle),
    CASE(body_reads_nothing),
    CASE(name_not_utf8),
    CASE(name_with_nul),
    CASE(name_with_newline),
    CASE(long_name),
    CASE(value_without_name),
    CASE(initializer_without_name),
    CASE(unknown_operators),
    CASE(unknown_attribute),
    CASE(attribute_of_wrong_type),
    CASE(too_few_inputs),
    CASE(too_many_outputs),
    CASE(shapes_do_not_fit),
    CASE(declared_output_type),
    CASE(operand_types),
    CASE(matmul_mismatch),
    CASE(conv_channels),
    CASE(conv_kernel_too_large),
    CASE(conv_groups),
    CASE(conv_group_zero),
    CASE(axis_out_of_range),
    CASE(too_many_inputs),
    CASE(output_left_out),
    CASE(reordered_sums),
    CASE(blocks_given_out),
    CASE(loop_without_body),
    CASE(sequence_input),
    CASE(attribute_twice),
    CASE(attribute_without_name),
    CASE(attribute_without_type),
    CASE(attribute_two_values),
    CASE(attribute_contradiction),
    CASE(attribute_type_99),
    CASE(attribute_type_proto),
    CASE(reference_outside),
    CASE(negative_dim),
    CASE(overflowing_dims),
    CASE(huge_dims),
    CASE(nine_dims),
    CASE(declared_negative),
    CASE(declared_huge),
    CASE(declared_nine),
    CASE(declared_type_99),
    CASE(dtype_clash),
    CASE(shape_clash),
    CASE(data_short),
    CASE(data_long),
    CASE(no_data),
    CASE(data_in_wrong_field),
    CASE(data_in_two_places),
    CASE(number_too_large),
    CASE(no_data_type),
    CASE(float8),
    CASE(complex64),
    CASE(raw_strings),
    CASE(segment),
    CASE(sparse_initializer),
    CASE(sparse_input),
    CASE(external_missing),
    CASE(external_outside),
    CASE(external_absolute),
    CASE(external_symlink),
    CASE(external_hard_link),
    CASE(external_folder),
    CASE(external_fifo),
    CASE(external_short),
    CASE(external_offset),
    CASE(external_huge_offset),
    CASE(external_bad_number),
    CASE(external_length),
    CASE(external_no_location),
    CASE(function_recursion),
    CASE(function_ring),
    CASE(function_bomb),
    CASE(function_chain),
    CASE(function_without_output),
    CASE(function_reads_outside),
    CASE(function_inputs),
    CASE(function_twice),
    CASE(function_bad_body),
    CASE(unknown_overload),
};
const size_t n_bad_models = sizeof bad_models / sizeof *bad_models;
