/* Conditions of patterns and the attributes that they make: what matches, why not, and where a text is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "optimize/match/condition.h"
#include "optimize/match/match.h"

#include <hone/hone.h>
#include <hone/plugins.h>
#include <hone/text.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* A depthwise convolution that a Relu follows, of known and of symbolic dimensions. */
#define NET                                                                                                  \
  "graph g(%x: f32[Nx8x9x9], %i: i64[2x3]) -> (%y, %z, %t) {\n"                                              \
  "  const %w: f32[8x1x3x3] = rand(1)\n"                                                                     \
  "  const %b: f32[8] = rand(2)\n"                                                                           \
  "  const %two: f32 = {2.0}\n"                                                                              \
  "  %c = Conv(%x, %w, %b) {group=8, kernel_shape=[3, 3], pads=[1, 1, 1, 1], auto_pad=\"NOTSET\"} \"dw\"\n"  \
  "  %y = Relu(%c)\n"                                                                                        \
  "  %l = LeakyRelu(%x) {alpha=0.5} \"leaky\"\n"                                                             \
  "  %z = Mul(%l, %two) \"scaled\"\n"                                                                        \
  "  %t = Add(%i, %i) \"whole\"\n"                                                                           \
  "}\n"

typedef struct given {
  const char *pattern;
  const char *near; /* NULL: it matches; "": it is no near miss either; else what the reason says */
} given;

/* The root's line behind which conditions stand. */
#define CONV "%c = Conv(%x, !%w, ?%b) where "
#define RELU "\n%y = Relu(%c)"

static const given matches[] = {
    {CONV "group == dim(%x, 1) and kernel_shape == [3, 3]" RELU, NULL},
    {CONV "group else 1 == dim(%x, 1) and strides else [1, 1] == [1, 1]" RELU, NULL},
    {CONV "dims(%w) == [?, 1, 3, 3] and rank(%x) == 4 and type(%x) == f32" RELU, NULL},
    {CONV "dim(%x, 0) == dim(%y, 0)" RELU, NULL}, /* the same symbol; a name of a later line */
    {CONV "dims(%x) == dims(%c)" RELU, NULL},
    {CONV "dim(%x, -1) == 9 and dim(%w, -4) == group" RELU, NULL},
    {CONV "dim(%x, 1) mod group == 0 and dim(%x, 1) / group == dim(%w, 1)" RELU, NULL},
    {CONV "dim(%x, 2) * dim(%x, 3) == 81 and dim(%x, 1) <= 8 and 8 >= dim(%x, 1)" RELU, NULL},
    {CONV "auto_pad == \"NOTSET\" and pads != [0, 0, 0, 0]" RELU, NULL},
    {CONV "(kernel_shape == [5, 5] or kernel_shape == [3, 3]) and group > 1" RELU, NULL},
    {"%c = Conv(%x, %w, %b)\n%y = Relu(%c) where attr(%c, group) == dim(%y, 1) // a comment", NULL},
    {"%l = LeakyRelu(%x) where alpha == 0.5\n%z = Mul(%l, !%k) where value(%k) == 2 and value(%k) < 2.5",
     NULL},
    {"%t = Add(%i, %i) where type(%i) == i64 and dims(%t) == [2, 3]", NULL},
    /* near misses: the first condition that does not hold, with both sides */
    {CONV "group == dim(%x, 1) and kernel_shape == [5, 5]" RELU,
     "kernel_shape == [5, 5] does not hold at 'dw': [3, 3] and [5, 5]"},
    {CONV "group == 1 and kernel_shape == [5, 5]" RELU, "group == 1 does not hold at 'dw': 8 and 1"},
    {CONV "(group == 1 or group == 2)" RELU, "(group == 1 or group == 2) does not hold at 'dw': 8 and 2"},
    {CONV "dim(%x, 0) == 1" RELU, "dim(%x, 0) == 1 does not hold at 'dw': dim(%x, 0) is not known"},
    {CONV "dim(%x, 0) > 0" RELU, "dim(%x, 0) is not known"},
    {CONV "dim(%x, 0) != 1" RELU, "dim(%x, 0) is not known"},
    {CONV "dim(%x, 0) * 2 == 2" RELU, "dim(%x, 0) is not known"},
    {CONV "dims(%x) == [1, 8, 9, 9]" RELU, "dims(%x) is not known"},
    {CONV "dim(%x, 4) == 1" RELU, "%x has 4 dimensions"},
    {CONV "strides == [1, 1]" RELU, "Conv 'dw' has no attribute strides"},
    {CONV "kernel_shape == 3" RELU, "not the same kind"},
    {CONV "kernel_shape > 3" RELU, "no number"},
    {CONV "value(%x) == 3" RELU, "%x is no constant"},
    {CONV "value(%w) == 3" RELU, "%w is no number and no list of numbers"},
    {CONV "group mod 0 == 3" RELU, "divides by 0"},
    {CONV "group mod 2.5 == 3" RELU, "only whole numbers"},
    {CONV "dims(%w) == [8, 1, 3]" RELU, "[8, 1, 3, 3] and [8, 1, 3]"},
    {CONV "auto_pad == \"VALID\"" RELU, "\"NOTSET\" and \"VALID\""},
    {CONV "type(%x) == f16" RELU, "f32 and f16"},
    {"%l = LeakyRelu(%x) where alpha == 0.25\n%z = Mul(%l, %k)",
     "alpha == 0.25 does not hold at 'leaky': 0.5 and 0.25"},
    {"%t = Add(%i, %i) where type(%i) == f32", "i64 and f32"}, /* one line, and its structure fits */
    /* no near miss: something else does not fit, too */
    {CONV "group == 1"
          "\n%y = Relu(%c) {alpha=1.0}",
     ""},
    {"%y = Mul(%x, 3)", ""},
};

static void test_matching(void **state) {
  (void)state;
  hn_model *m = net_parse("conditions", NET);
  for (size_t i = 0; i < COUNT(matches); i++) {
    hn_arena arena = {0};
    hn_pattern pattern;
    hone_error e = {0};
    hone_match match;
    hn_match_result best = HN_MATCH_NO;
    char reason[160] = "";
    if (hn_pattern_compile("p", matches[i].pattern, &arena, &pattern, &e) != HONE_OK)
      fail_msg("%s: %s (%s)", matches[i].pattern, e.what, e.where);
    for (hone_node *n = m->graph->first; n; n = n->next) {
      hone_reason why = {""};
      const hn_match_result r = hn_pattern_match(&pattern, n, &match, &why);
      if (r <= best) continue;
      best = r;
      snprintf(reason, sizeof reason, "%s", why.text);
    }
    const char *near = matches[i].near;
    const hn_match_result want = !near ? HN_MATCH_YES : *near ? HN_MATCH_NEAR : HN_MATCH_NO;
    if (best != want || (near && !strstr(reason, near)))
      fail_msg("%s: result %d, reason '%s'", matches[i].pattern, best, reason);
    hn_arena_free(&arena);
  }
  hone_model_release(m);
}

/* Texts that are wrong: in the pattern or its settings, and where. */
static const struct {
  const char *text, *inputs, *settings;
  char in; /* t, i, s */
  int line, column;
  const char *what;
} faults[] = {
    {"%y = Relu(%x) where", "%x", NULL, 't', 1, 20, "expected an attribute"},
    {"%y = Relu(%x) where alpha", "%x", NULL, 't', 1, 26, "expected ==, !="},
    {"%y = Relu(%x) where alpha = 1", "%x", NULL, 't', 1, 29, "expected '='"},
    {"%y = Relu(%x) where alpha == ", "%x", NULL, 't', 1, 30, "expected an attribute"},
    {"%y = Relu(%x) where alpha == 1 and", "%x", NULL, 't', 1, 35, "expected an attribute"},
    {"%y = Relu(%x) where alpha == 1 or beta == 2", "%x", NULL, 't', 1, 32, "joined by or"},
    {"%y = Relu(%x) where (alpha == 1 and beta == 2)", "%x", NULL, 't', 1, 33, "expected ')'"},
    {"%a = Relu(%x)\n%y = Relu(%a) where dim(%b, 1) == 2", "%x", NULL, 't', 2, 21, "has no '%b'"},
    {"%y = Relu(%x) where dim(x, 1) == 2", "%x", NULL, 't', 1, 25, "expected a %name"},
    {"%y = Relu(%x) where dim(%x) == 2", "%x", NULL, 't', 1, 27, "expected ','"},
    {"%y = Relu(%x) where dim(%x, 99) == 2", "%x", NULL, 't', 1, 29, "number of a dimension"},
    {"%y = Relu(%x) where dim(%x, 1.5) == 2", "%x", NULL, 't', 1, 29, "number of a dimension"},
    {"%y = Relu(%x) where size(%x) == 2", "%x", NULL, 't', 1, 21, "there is no 'size('"},
    {"%y = Relu(%x) where attr(%x, axis) == 2", "%x", NULL, 't', 1, 21, "no line makes '%x'"},
    {"%y = Relu(%x) where attr(%y) == 2", "%x", NULL, 't', 1, 28, "expected ','"},
    {"%y = Relu(%x) where rank(%x) == \"four\"", "%x", NULL, 't', 1, 21, "never be the same kind"},
    {"%y = Relu(%x) where dims(%x) == 4", "%x", NULL, 't', 1, 21, "never be the same kind"},
    {"%y = Relu(%x) where dims(%x) < [4]", "%x", NULL, 't', 1, 21, "only numbers"},
    {"%y = Relu(%x) where type(%x) < f32", "%x", NULL, 't', 1, 21, "only numbers"},
    {"%y = Relu(%x) where axes == [1, x]", "%x", NULL, 't', 1, 33, "number or ? in the list"},
    {"%y = Relu(%x) where axes == [1 2]", "%x", NULL, 't', 1, 32, "expected ','"},
    {"%y = Relu(%x) where axes == [1", "%x", NULL, 't', 1, 31, "expected ','"},
    {"%y = Relu(%x) where axis == 1 & 2", "%x", NULL, 't', 1, 31, "unexpected character"},
    {"%y = Relu(%x) where axis + 1 == 2", "%x", NULL, 't', 1, 26, "unexpected character '+'"},
    {"%y = Relu(%x) where axis mod == 2", "%x", NULL, 't', 1, 30, "expected an attribute"},
    {"%y = Relu(%x)\nor\n%y = Elu(%x) where alpha", "%x", NULL, 't', 3, 25, "expected =="},
    {"%y = Relu(%x) where a else b else c else d else e else f else g else h else i else j else k else l "
     "else "
     "m else n else o else p else q else r else s == 1",
     "%x", NULL, 't', 1, 0, "more than 16"},
    {"%y = Relu(%x)", "%x %k", NULL, 'i', 1, 4, "has no '%k'"},
    {"%y = Relu(%x)", "x", NULL, 'i', 1, 1, "has no 'x'"},
    {"%y = Relu(%x)", "%x", "alpha", 's', 1, 6, "expected '='"},
    {"%y = Relu(%x)", "%x", "alpha = value(%k)", 's', 1, 9, "has no '%k'"},
    {"%y = Relu(%x)", "%x", "alpha = 1\nbeta = gamma", 's', 2, 8, "of which node"},
    {"%y = Relu(%x)", "%x", "alpha = attr(%x, axis)", 's', 1, 9, "no line makes"},
    {"%y = Relu(%x)", "%x", "alpha = 1, alpha = 2", 's', 1, 12, "given twice"},
    {"%y = Relu(%x)", "%x", "alpha = [1, 2", 's', 1, 14, "expected ','"},
    {"%y = Relu(%x)", "%x", "= 1", 's', 1, 1, "expected the name of an attribute"},
};

static void test_faults(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(faults); i++) {
    const hone_pattern_desc d = {HONE_DESC_HEAD(hone_pattern_desc), .name = "test.P", .text = faults[i].text,
                                 .inputs = faults[i].inputs, .settings = faults[i].settings};
    hone_pattern_place place;
    hone_error e = {0};
    const hone_status status = hone_pattern_check(&d, &place, &e);
    const char *in = faults[i].in == 't' ? d.text : faults[i].in == 'i' ? d.inputs : d.settings;
    if (status != HONE_ERROR_INPUT || place.in != in || place.line != faults[i].line ||
        (faults[i].column && place.column != faults[i].column) || !strstr(e.what, faults[i].what))
      fail_msg("%s | %s | %s: status %d, %d:%d %s", d.text, d.inputs, d.settings ? d.settings : "", status,
               place.line, place.column, e.what);
  }
  hone_error e = {0};
  assert_int_equal(hone_pattern_check(NULL, NULL, &e), HONE_ERROR_USAGE);
}

/* Attributes for an operator, by the types that it has; NULL: why it is none. */
static const struct {
  const char *settings;
  hone_attr_type type;
  const char *text; /* as the text form prints it */
  const char *why;
} settings[] = {
    {"a = attr(%c, kernel_shape)", HONE_ATTR_INTS, "{a=[3, 3]}", NULL},
    {"a = attr(%c, strides) else [1, 2]", HONE_ATTR_INTS, "{a=[1, 2]}", NULL},
    {"a = dims(%w)", HONE_ATTR_INTS, "{a=[8, 1, 3, 3]}", NULL},
    {"a = attr(%c, pads)", HONE_ATTR_FLOATS, "{a=floats[1, 1, 1, 1]}", NULL},
    {"a = attr(%c, group)", HONE_ATTR_INT, "{a=8}", NULL},
    {"a = attr(%c, group) / 16", HONE_ATTR_FLOAT, "{a=0.5}", NULL},
    {"a = dim(%x, 1) * 2", HONE_ATTR_INT, "{a=16}", NULL},
    {"a = attr(%c, auto_pad)", HONE_ATTR_STRING, "{a=\"NOTSET\"}", NULL},
    {"a = \"text\"", HONE_ATTR_STRING, "{a=\"text\"}", NULL},
    {"a = 2.0", HONE_ATTR_INT, "{a=2}", NULL},
    {"a = 2.5", HONE_ATTR_INT, NULL, "is no whole number"},
    {"a = [1, 2.5]", HONE_ATTR_INTS, NULL, "are no whole numbers"},
    {"a = [1, ?]", HONE_ATTR_INTS, NULL, "are no whole numbers"},
    {"a = attr(%c, strides)", HONE_ATTR_INTS, NULL, "has no attribute strides"},
    {"a = attr(%c, group)", HONE_ATTR_INTS, NULL, "is no list"},
    {"a = attr(%c, pads)", HONE_ATTR_INT, NULL, "is no number"},
    {"a = attr(%c, pads)", HONE_ATTR_STRING, NULL, "is no text"},
    {"a = dim(%x, 0)", HONE_ATTR_INT, NULL, "is not known"},
    {"a = dims(%x)", HONE_ATTR_INTS, NULL, "is not known"},
    {"a = attr(%c, none) else dims(%x)", HONE_ATTR_INTS, NULL, "is not known"},
    {"a = 1", HONE_ATTR_TENSOR, NULL, "is no number, text or list"},
};

static void test_settings(void **state) {
  (void)state;
  hn_model *m = net_parse("settings", NET);
  for (size_t i = 0; i < COUNT(settings); i++) {
    hn_arena arena = {0};
    hn_pattern pattern;
    hone_error e = {0};
    hone_match match;
    hone_reason why = {""};
    uint32_t n;
    bool found = false;
    hn_pattern_text text = {"p", "%c = Conv(%x, %w, %b)\n%y = Relu(%c)", settings[i].settings, false, 0, 0};
    if (hn_pattern_compile_all(&text, &arena, &pattern, 1, &n, &e) != HONE_OK)
      fail_msg("%s: %s", settings[i].settings, e.what);
    for (hone_node *node = m->graph->first; node && !found; node = node->next)
      found = hn_pattern_match(&pattern, node, &match, NULL) == HN_MATCH_YES;
    assert_true(found);
    hone_node *node = hn_node_create(m->graph, NULL, "Probe", "test", NULL, NULL, 0, NULL, 0);
    const bool ready = hn_setting_apply(&pattern.setting[0], settings[i].type, &match, NULL, &why);
    assert_int_equal(node->n_attr, 0);
    const bool ok = hn_setting_apply(&pattern.setting[0], settings[i].type, &match, node, &why);
    assert_int_equal(ok, ready);
    hn_str printed = {0};
    assert_true(hn_node_print(node, NULL, NULL, &printed));
    if (ok != (settings[i].text != NULL) || (ok && !strstr(printed.ptr, settings[i].text)) ||
        (!ok && !strstr(why.text, settings[i].why)))
      fail_msg("%s: %d '%s' %s", settings[i].settings, ok, why.text, printed.ptr);
    hn_node_remove(node);
    hn_str_free(&printed);
    hn_arena_free(&arena);
  }
  hone_model_release(m);
}

/* A pattern as the nodes that it describes. */
static void test_nodes(void **state) {
  (void)state;
  static const char text[] = "graph g(%x: f32[1x8x9x9], %w: f32[8x1x3x3]) -> (%y) {\n"
                             "  %y = P(%x, %w) {strides=[2, 1], factor=1.5}\n}\n";
  hn_model *m;
  hone_error e = {0};
  assert_int_equal(hn_model_parse("nodes", text, sizeof text - 1, &m, &e), HONE_OK);
  const hone_pattern_desc d = {
      HONE_DESC_HEAD(hone_pattern_desc), .name = "test.P",
      .text =
          "%c = Conv|ConvTranspose(%x, !%w, ?%b) where group == dim(%x, 1) and kernel_shape == [3, ?] and "
          "strides else [1, 1] != [7, 7]\n%s = Mul(%c, !%k)\n%y = Pow(%s, sqrt(2/pi)) where attr(%c, group) "
          "== 3\n"
          "or\n%y = Relu(%x)",
      .inputs = "%x %w %b", .settings = "strides = attr(%c, strides)\nfactor = 1"};
  hone_pattern_desc of_value = d;
  const hone_tensor_desc x = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 8, 9, 9}),
                         w = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){8, 1, 3, 3});
  const hone_tensor_desc *const in[] = {&x, &w, NULL};
  char *nodes, *made;
  of_value.text = "%c = Conv(%x, !%w, ?%b) where group == dim(%x, 1)\n%y = Mul(%c, !%k)";
  of_value.settings = "strides = attr(%c, strides)\nfactor = value(%k)";
  assert_int_equal(hone_pattern_nodes(&of_value, m->graph->first, in, 3, &nodes, &made, &e), HONE_OK);
  assert_string_equal(nodes, "const %k: f32 = {1.5}\n%c = Conv(%x, %w, _) {strides=[2, 1], group=8}\n"
                             "%y = Mul(%c, %k)\n");
  assert_string_equal(made, "y");
  hone_text_free(nodes);
  hone_text_free(made);
  assert_int_equal(hone_pattern_nodes(&of_value, NULL, NULL, 0, &nodes, &made, &e), HONE_OK);
  assert_non_null(strstr(nodes, "Conv(%x, %w, _)\n")); /* no dimensions, no group */
  hone_text_free(nodes);
  hone_text_free(made);
  assert_int_equal(hone_pattern_nodes(&d, NULL, in, 3, &nodes, &made, &e),
                   HONE_ERROR_INPUT); /* the 2nd has no %c */
  assert_null(nodes);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_matching),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_settings),
      cmocka_unit_test(test_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
