/* Operators of ai.onnx.ml: what they answer, by the references and by plans, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/session.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 12 };

typedef struct answer {
  const char *graph; /* "(inputs) -> (outputs) { nodes }" */
  double x[MOST];
  const char *said[MOST]; /* x, where it is strings */
  int64_t rows, columns;  /* of y; rows 0: y is a vector */
  double y[MOST];
  const char *words[MOST]; /* y, where it is strings */
} answer;

static hone_status start(const char *graph, bool reference, hone_engine *engine, hone_plan **plan,
                         hone_error *e) {
  char text[2048];
  snprintf(text, sizeof text, "opset 20\nopset \"ai.onnx.ml\" 5\ngraph g%s\n", graph);
  hone_model *model = NULL;
  hone_status s = hone_model_parse(text, strlen(text), &model, e);
  const hone_plan_options options = {.level = reference ? 0 : 2, .reference = reference};
  if (!s) s = hone_plan_create(engine, model, &options, plan, e);
  hone_model_release(model);
  return s;
}

static void put(const hone_tensor *t, int64_t i, const answer *a) {
  switch (t->desc.dtype) {
  case HONE_DTYPE_F32: ((float *)t->data)[i] = (float)a->x[i]; break;
  case HONE_DTYPE_F64: ((double *)t->data)[i] = a->x[i]; break;
  case HONE_DTYPE_I64: ((int64_t *)t->data)[i] = (int64_t)a->x[i]; break;
  case HONE_DTYPE_I32: ((int32_t *)t->data)[i] = (int32_t)a->x[i]; break;
  default: ((hone_string *)t->data)[i] = (hone_string){a->said[i], strlen(a->said[i])};
  }
}

static void same(const hone_tensor *t, const answer *a) {
  const int64_t n = hone_desc_count(&t->desc);
  assert_int_equal(t->desc.rank, a->rows ? 2 : 1);
  if (a->rows) assert_int_equal(t->desc.dim[0], a->rows);
  assert_int_equal(t->desc.dim[t->desc.rank - 1], a->columns);
  for (int64_t i = 0; i < n; i++) {
    const double want = a->y[i];
    switch (t->desc.dtype) {
    case HONE_DTYPE_F32: assert_true(fabs((double)((float *)t->data)[i] - want) < 1e-6); break;
    case HONE_DTYPE_F64: assert_true(fabs(((double *)t->data)[i] - want) < 1e-12); break;
    case HONE_DTYPE_I64: assert_true(((int64_t *)t->data)[i] == (int64_t)want); break;
    case HONE_DTYPE_I32: assert_true(((int32_t *)t->data)[i] == (int32_t)want); break;
    default: {
      const hone_string s = ((hone_string *)t->data)[i];
      assert_int_equal(s.len, strlen(a->words[i]));
      assert_memory_equal(s.ptr, a->words[i], s.len);
    }
    }
  }
}

static const char trees_graph[] =
    "(%x: f32[4x2]) -> (%y) { %y = ai.onnx.ml::TreeEnsemble(%x) {aggregate_function=1, n_targets=2, "
    "tree_roots=[0, 2],\n"
    "nodes_featureids=[0, 1, 1], nodes_modes=u8[3]{0, 6, 3}, nodes_splits=f32[3]{1.5, 0, 0},\n"
    "nodes_truenodeids=[1, 1, 3], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[0, 2, 1], "
    "nodes_falseleafs=[1, "
    "1, 1],\n"
    "nodes_missing_value_tracks_true=[1, 0, 0], membership_values=f32[3]{2, 5, nan},\n"
    "leaf_targetids=[0, 1, 1, 0], leaf_weights=f32[4]{10, 20, 30, 40}} }";

/* Tree 4: x0 < 1 (or NaN) votes 1 for target 0 and 5 for target 1, else x1 == 2 is 2 for 0, else 3 for 0;
 * tree 7 is a leaf that votes 100 for target 1. */
#define REGRESSOR(nodes, votes, more)                                                                        \
  "(%x: f64[4x2]) -> (%y) { %y = ai.onnx.ml::TreeEnsembleRegressor(%x) {n_targets=2, "                       \
  "nodes_treeids=[4, 4, 4, 4, 4, 7], nodes_nodeids=[" nodes "], nodes_featureids=[0, 1, 0, 0, 0, 0], "       \
  "nodes_modes=[\"BRANCH_LT\", \"BRANCH_EQ\", \"LEAF\", \"LEAF\", \"LEAF\", \"LEAF\"], "                     \
  "nodes_values=floats[1, 2, 0, 0, 0, 0], nodes_truenodeids=[2, 3, 0, 0, 0, 0], "                            \
  "nodes_falsenodeids=[1, 4, 0, 0, 0, 0], nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 0], "              \
  "target_treeids=[7, 4, 4, 4, 4], target_nodeids=[" votes "], target_ids=[1, 0, 1, 0, 0], "                 \
  "target_weights=floats[100, 1, 5, 2, 3]" more "} }"

/* x0 <= 0: votes of the first leaf, else of the second. */
#define CLASSIFIER(outputs, ids, weights, more)                                                              \
  "(%x: f32[2x1]) -> (" outputs ") { %l, %z = ai.onnx.ml::TreeEnsembleClassifier(%x) {"                      \
  "nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], "                           \
  "nodes_modes=[\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], nodes_values=floats[0, 0, 0], "                         \
  "nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], class_treeids=[0, 0, 0, 0], "                  \
  "class_nodeids=[1, 2, 1, 2], class_ids=[" ids "], class_weights=floats[" weights "]" more "} }"
#define WORDS ", classlabels_strings=[\"no\", \"yes\"]"
#define WORDS_FIRST "classlabels_strings=[\"no\", \"yes\"], "
#define LINEAR(outputs, more)                                                                                \
  "(%x: f32[2x2]) -> (" outputs ") { %l, %z = ai.onnx.ml::LinearClassifier(%x) {" more "} }"
/* Two classes with a vector each: 1 * (x . (1, 0)) - 1 * (x . (0, 1)) + rho is for the first. */
#define SVM(outputs, more)                                                                                   \
  "(%x: f32[2x2]) -> (" outputs ") { %l, %z = ai.onnx.ml::SVMClassifier(%x) {kernel_params=floats[0.5, 1, "  \
  "2], vectors_per_class=[1, 1], support_vectors=floats[1, 0, 0, 1], coefficients=floats[1, -1], "           \
  "rho=floats[0.5], classlabels_ints=[4, 9]" more "} }"

static const answer answers[] = {
    {CLASSIFIER("%l", "0, 0, 1, 1", "1, 5, 2, 3", ", classlabels_int64s=[7, -8]"), .x = {0, 1}, .columns = 2,
     .y = {-8, 7}},
    {CLASSIFIER("%z", "0, 0, 1, 1", "1, 5, 2, 3", WORDS ", base_values=floats[0.5, 1]"), .x = {0, 1},
     .rows = 2, .columns = 2, .y = {1.5, 3, 5.5, 4}},
    {CLASSIFIER("%l", "0, 0, 0, 0", "0.25, 0.5, 0.125, 0.25", WORDS), .x = {0, 1}, .columns = 2,
     .words = {"no", "yes"}},
    {CLASSIFIER("%z", "0, 0, 0, 0", "0.25, 0.5, 0.125, 0.25", WORDS), .x = {0, 1}, .rows = 2, .columns = 2,
     .y = {0.625, 0.375, 0.25, 0.75}},
    {CLASSIFIER("%z", "0, 0, 0, 0", "-1, 0.5, 0, 0.5", WORDS ", base_values=floats[1]"), .x = {0, 1},
     .rows = 2, .columns = 2, .y = {0, 0, -2, 2}},
    {CLASSIFIER("%z", "1, 1, 1, 1", "-1, 0.5, 0, 0.5", WORDS), .x = {0, 1}, .rows = 2, .columns = 2,
     .y = {0, -1, 0, 1}},
    {LINEAR("%l", "classlabels_ints=[5, 6, 7], intercepts=floats[0, 0, 1.5], coefficients=floats[1, 0, 0, 1, "
                  "0, 0]"),
     .x = {3, 2, 0, 1}, .columns = 2, .y = {5, 7}},
    {LINEAR("%l", WORDS_FIRST "intercepts=floats[-1], coefficients=floats[1, 1]"), .x = {3, 2, 0, 1},
     .columns = 2, .words = {"yes", "no"}},
    {LINEAR("%z", WORDS_FIRST "intercepts=floats[-1], coefficients=floats[1, 1]"), .x = {3, 2, 0, 1},
     .rows = 2, .columns = 2, .y = {-3, 4, 1, 0}},
    {LINEAR("%z", WORDS_FIRST "intercepts=floats[0], coefficients=floats[1, 0], post_transform=\"LOGISTIC\""),
     .x = {1, 2, 0, 1}, .rows = 2, .columns = 2, .y = {0.2689414213699951, 0.7310585786300049, 0.5, 0.5}},
    {LINEAR("%z", WORDS_FIRST "intercepts=floats[], coefficients=floats[1, 0, 0, 2]"), .x = {3, 2, 0, 1},
     .rows = 2, .columns = 2, .y = {3, 4, 0, 2}},
    {SVM("%l", ""), .x = {3, 2, 0, 1}, .columns = 2, .y = {4, 9}},
    {SVM("%z", ""), .x = {3, 2, 0, 1}, .rows = 2, .columns = 2, .y = {-1.5, 1.5, 0.5, -0.5}},
    {SVM("%z", ", kernel_type=\"POLY\""), .x = {2, 0, 0, 2}, .rows = 2, .columns = 2,
     .y = {-3.5, 3.5, 2.5, -2.5}},
    {SVM("%z", ", prob_a=floats[0], prob_b=floats[0]"), .x = {3, 2, 0, 1}, .rows = 2, .columns = 2,
     .y = {0.5, 0.5, 0.5, 0.5}},
    {"(%x: f32[2x2]) -> (%y) { %y = ai.onnx.ml::SVMRegressor(%x) {kernel_type=\"RBF\", kernel_params=floats["
     "0.5, 0, 0], n_supports=1, support_vectors=floats[1, 2], coefficients=floats[2], rho=floats[1]} }",
     .x = {1, 2, 1, 4}, .rows = 2, .columns = 1, .y = {3, 1.2706705664732254}},
    {"(%x: f32[2x2]) -> (%y) { %y = ai.onnx.ml::SVMRegressor(%x) {one_class=1, coefficients=floats[1, -1], "
     "rho=floats[0.5]} }",
     .x = {1, 2, 1, 1}, .rows = 2, .columns = 1, .y = {-1, 1}},
    {"(%x: string[2]) -> (%y) { %y = ai.onnx.ml::OneHotEncoder(%x) {cats_strings=[\"a\", \"b\", \"\"]} }",
     .said = {"", "c"}, .rows = 2, .columns = 3, .y = {0, 0, 1, 0, 0, 0}},
    {"(%x: f32[3]) -> (%y) { %y = ai.onnx.ml::OneHotEncoder(%x) {cats_int64s=[3, -1, 3]} }",
     .x = {-1.5, 3.25, 4}, .rows = 3, .columns = 3, .y = {0, 1, 0, 0, 0, 1, 0, 0, 0}},
    {"(%x: f64[2]) -> (%y) { %y = ai.onnx.ml::OneHotEncoder(%x) {cats_int64s=[3, -1], zeros=0} }",
     .x = {-1, 3}, .rows = 2, .columns = 2, .y = {0, 1, 1, 0}},
    {"(%x: string[2]) -> (%y) { %y = ai.onnx.ml::CategoryMapper(%x) {cats_strings=[\"a\"], cats_int64s=[5]} "
     "}",
     .said = {"a", "ab"}, .columns = 2, .y = {5, -1}},
    {"(%x: i64[2]) -> (%y) { %y = ai.onnx.ml::CategoryMapper(%x) {cats_strings=[\"a\"], cats_int64s=[5]} }",
     .x = {6, 5}, .columns = 2, .words = {"_Unused", "a"}},
    {"(%x: f32[2x2]) -> (%y) { %y = ai.onnx.ml::Imputer(%x) {imputed_value_floats=floats[7, 8], "
     "replaced_value_float=nan} }",
     .x = {NAN, 1, 2, NAN}, .rows = 2, .columns = 2, .y = {7, 1, 2, 8}},
    {"(%x: i64[3]) -> (%y) { %y = ai.onnx.ml::Imputer(%x) {imputed_value_int64s=[9]} }", .x = {0, 1, 0},
     .columns = 3, .y = {9, 1, 9}},
    {"(%x: f64[2x2]) -> (%y) { %y = ai.onnx.ml::FeatureVectorizer(%x, i64[2x1]{8, 9}, %x) "
     "{inputdimensions=[1, 2, 2]} }",
     .x = {1, 2, 3, 4}, .rows = 2, .columns = 5, .y = {1, 8, 0, 1, 2, 3, 9, 0, 3, 4}},
    {REGRESSOR("0, 1, 2, 3, 4, 0", "0, 2, 2, 3, 4", ""), .x = {0, 2, 1, 2, 1, 3, NAN, 0}, .rows = 4,
     .columns = 2, .y = {1, 105, 2, 100, 3, 100, 1, 105}},
    {REGRESSOR("0, 1, 2, 3, 4, 0", "0, 2, 2, 3, 4",
               ", aggregate_function=\"MIN\", base_values=floats[0.5, -1]"),
     .x = {0, 2, 1, 2, 1, 3, NAN, 0}, .rows = 4, .columns = 2, .y = {1.5, 4, 2.5, 99, 3.5, 99, 1.5, 4}},
    {"(%x: f32[2x3]) -> (%y) { %y = ai.onnx.ml::ArrayFeatureExtractor(%x, i64[3]{2, 0, 2}) }",
     .x = {1, 2, 3, 4, 5, 6}, .rows = 2, .columns = 3, .y = {3, 1, 3, 6, 4, 6}},
    {"(%x: string[3]) -> (%y) { %y = ai.onnx.ml::ArrayFeatureExtractor(%x, i64[1x1]{1}) }",
     .said = {"a", "b", "c"}, .rows = 1, .columns = 1, .words = {"b"}},
    {"(%x: i32[4]) -> (%y) { %y = ai.onnx.ml::Binarizer(%x) {threshold=1.5} }", .x = {1, 2, -3, 4},
     .columns = 4, .y = {0, 1, 0, 1}},
    {"(%x: f64[2x2]) -> (%y) { %y = ai.onnx.ml::Scaler(%x) {offset=floats[1, 2], scale=floats[2]} }",
     .x = {1, 2, 3, 4}, .rows = 2, .columns = 2, .y = {0, 0, 4, 4}},
    {"(%x: f32[2x2]) -> (%y) { %y = ai.onnx.ml::Normalizer(%x) {norm=\"L1\"} }", .x = {1, -3, 0, 0},
     .rows = 2, .columns = 2, .y = {0.25, -0.75, 0, 0}},
    {"(%x: i64[1x2]) -> (%y) { %y = ai.onnx.ml::Normalizer(%x) {norm=\"L2\"} }", .x = {3, -4}, .rows = 1,
     .columns = 2, .y = {0.6, -0.8}},
    {"(%x: f32[2]) -> (%y) { %y = ai.onnx.ml::Normalizer(%x) }", .x = {-8, 4}, .columns = 2, .y = {-2, 1}},
    {"(%x: f32[2x2]) -> (%y) { %y = ai.onnx.ml::LinearRegressor(%x) {coefficients=floats[1, 2, 3, 4], "
     "targets=2,\n"
     "intercepts=floats[0.5, -1]} }",
     .x = {1, 1, 0, 2}, .rows = 2, .columns = 2, .y = {3.5, 6, 4.5, 7}},
    {"(%x: f32[1x1]) -> (%y) { %y = ai.onnx.ml::LinearRegressor(%x) {intercepts=floats[], "
     "coefficients=floats[1, 2], targets=2} }",
     .x = {3}, .rows = 1, .columns = 2, .y = {3, 6}},
    {"(%x: f32[1x1]) -> (%y) { %y = ai.onnx.ml::LinearRegressor(%x) {coefficients=floats[1, 2], targets=2,\n"
     "post_transform=\"SOFTMAX\"} }",
     .x = {0}, .rows = 1, .columns = 2, .y = {0.5, 0.5}},
    {"(%x: f32[1x1]) -> (%y) { %y = ai.onnx.ml::LinearRegressor(%x) {coefficients=floats[1, 0], targets=2,\n"
     "post_transform=\"SOFTMAX_ZERO\"} }",
     .x = {3}, .rows = 1, .columns = 2, .y = {1, 0}},
    {"(%x: f32[1x1]) -> (%y) { %y = ai.onnx.ml::LinearRegressor(%x) {coefficients=floats[1, -1], targets=2,\n"
     "post_transform=\"LOGISTIC\"} }",
     .x = {1}, .rows = 1, .columns = 2, .y = {0.7310585786300049, 0.2689414213699951}},
    {"(%x: string[4]) -> (%y) { %y = ai.onnx.ml::LabelEncoder(%x) {keys_strings=[\"a\", \"b\", \"a\"],\n"
     "values_int64s=[1, 2, 3], default_int64=7} }",
     .said = {"a", "", "b", "ab"}, .columns = 4, .y = {3, 7, 2, 7}},
    {"(%x: i64[3]) -> (%y) { %y = ai.onnx.ml::LabelEncoder(%x) {keys_int64s=[4, -5], values_strings=[\"x\", "
     "\"\"]} }",
     .x = {-5, 4, 6}, .columns = 3, .words = {"", "x", "_Unused"}},
    {"(%x: f32[3]) -> (%y) { %y = ai.onnx.ml::LabelEncoder(%x) {keys_floats=floats[nan, 0], "
     "values_floats=floats[1, 2]} }",
     .x = {NAN, -0.0, 1}, .columns = 3, .y = {1, 2, 0}},
    {"(%x: f64[3]) -> (%y) { %y = ai.onnx.ml::LabelEncoder(%x) {keys_tensor=f64[2]{0.1, 0.2}, "
     "values_tensor=i32[2]{5, 6},\n"
     "default_tensor=i32[1]{-9}} }",
     .x = {0.2, 0.3, 0.1}, .columns = 3, .y = {6, -9, 5}},
    /* x0 <= 1.5 (or NaN): is x1 2 or 5 (20 or 30 for target 1), else 10 for target 0; x1 > 0: 40 for 0, else
       20 for 1 */
    {trees_graph, .x = {1, 2, 1, 3, 2, -1, NAN, 5}, .rows = 4, .columns = 2,
     .y = {40, 20, 40, 30, 10, 20, 40, 20}},
};

static void right_answers(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(NULL, &engine, &e), HONE_OK);
  for (size_t k = 0; k < 2 * sizeof answers / sizeof *answers; k++) {
    const answer *a = &answers[k / 2];
    hone_plan *plan = NULL;
    hone_context *context = NULL;
    if (start(a->graph, k % 2, engine, &plan, &e)) fail_msg("%s: %s %s", a->graph, e.where, e.what);
    assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
    double memory[2 * MOST] = {0};
    const hone_tensor x = {*hone_plan_input_desc(plan, 0), memory};
    for (int64_t i = 0; i < hone_desc_count(&x.desc); i++) put(&x, i, a);
    if (hone_context_run(context, (const hone_tensor *[]){&x}, NULL, &e))
      fail_msg("%s: %s %s", a->graph, e.where, e.what);
    same(hone_context_output(context, 0), a);
    hone_context_destroy(context);
    hone_plan_destroy(plan);
  }
  hone_engine_destroy(engine);
}

/* Trees with one thing wrong: feature, child, target, circle, length of a list, members. */
#define TREE(feature, yes, yes_leaf, target, modes, more)                                                    \
  "(%x: f32[1x2]) -> (%y) { %y = ai.onnx.ml::TreeEnsemble(%x) {n_targets=1, tree_roots=[0], "                \
  "nodes_featureids=[" feature "], nodes_modes=u8[1]{" modes                                                 \
  "}, nodes_splits=f32[1]{1.5}, nodes_truenodeids=[" yes "], nodes_trueleafs=[" yes_leaf                     \
  "], nodes_falsenodeids=[0], nodes_falseleafs=[1], leaf_targetids=[" target                                 \
  "], leaf_weights=f32[1]{10}" more "} }"

static const struct {
  const char *graph, *says;
} refused[] = {
    {REGRESSOR("0, 1, 2, 3, 3, 0", "0, 2, 2, 3, 3", ""), "two nodes 3"},
    {REGRESSOR("0, 1, 2, 3, 4, 0", "0, 2, 2, 3, 1", ""), "which is no leaf"},
    {REGRESSOR("0, 1, 2, 3, 9, 0", "0, 2, 2, 3, 9", ""), "leads to 3 and -1"},
    {REGRESSOR("0, 1, 2, 3, 4, 0", "0, 2, 2, 3, 4", ", base_values=floats[1]"), "differ in length"},
    {REGRESSOR("0, 1, 2, 3, 4, 0", "0, 2, 2, 3, 4", ", aggregate_function=\"MOST\""), "MOST"},
    {"(%x: f32[1x2]) -> (%y) { %y = ai.onnx.ml::TreeEnsembleRegressor(%x) {n_targets=1, "
     "nodes_treeids=[3, 3, 7], nodes_nodeids=[0, 1, 0], nodes_featureids=[0, 1, 0], "
     "nodes_modes=[\"BRANCH_LT\", \"BRANCH_LT\", \"LEAF\"], nodes_values=floats[1, 2, 0], "
     "nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[1, 0, 0], target_treeids=[7], target_nodeids=[0], "
     "target_ids=[0], target_weights=floats[5]} }",
     "tree 3 leads in circles"},
    {TREE("2", "0", "1", "0", "0", ""), "asks for feature 2 of 2"},
    {TREE("-1", "0", "1", "0", "0", ""), "asks for feature -1 of 2"},
    {TREE("0", "1", "1", "0", "0", ""), "leads to -1"},
    {TREE("0", "5", "0", "0", "0", ""), "leads to -1"},
    {TREE("0", "0", "1", "1", "0", ""), "votes for target 1 of 1"},
    {TREE("0", "0", "0", "0", "0", ""), "leads in circles"},
    {TREE("0", "0", "1", "0", "9", ""), "has mode 9"},
    {TREE("0", "0, 0", "1", "0", "0", ""), "differ in length"},
    {TREE("0", "0", "1", "0", "6", ""), "fewer sets"},
    {TREE("0", "0", "1", "0", "6", ", membership_values=f32[1]{1}"), "fewer sets"},
    {CLASSIFIER("%z", "0, 0, 2, 0", "1, 2, 3, 4", WORDS), "votes for target 2 of 2"},
    {CLASSIFIER("%z", "0, 0, 0, 0", "1, 2, 3, 4", ""), "no class labels"},
    {CLASSIFIER("%z", "0, 0, 0, 0", "1, 2, 3, 4", WORDS ", base_values=floats[1, 2, 3]"), "3 base values"},
    {LINEAR("%z", WORDS_FIRST "coefficients=floats[1, 2, 3]"), "3 coefficients"},
    {LINEAR("%z", WORDS_FIRST "coefficients=floats[1, 2], post_transform=\"MOST\""), "MOST"},
    {SVM("%z", ", prob_a=floats[1]"), "do not fit"},
    {SVM("%z", ", kernel_type=\"CUBE\""), "CUBE"},
    {"(%x: f32[2x2]) -> (%y) { %y = ai.onnx.ml::SVMRegressor(%x) {n_supports=3, support_vectors=floats[1, "
     "2], "
     "coefficients=floats[1, 1, 1], rho=floats[1]} }",
     "2 numbers for 3 vectors"},
    {"(%x: i64[1]) -> (%y) { %y = ai.onnx.ml::OneHotEncoder(%x) {cats_int64s=[1], zeros=0} }", "no category"},
    {"(%x: f32[1]) -> (%y) { %y = ai.onnx.ml::OneHotEncoder(%x) {cats_strings=[\"a\"]} }", "are strings"},
    {"(%x: f32[2x3]) -> (%y) { %y = ai.onnx.ml::Imputer(%x) {imputed_value_floats=floats[1, 2]} }",
     "3 features"},
    {"(%x: f32[2x3]) -> (%y) { %y = ai.onnx.ml::FeatureVectorizer(%x) {inputdimensions=[-1]} }", "has -1"},
    {"(%x: f32[2x3]) -> (%y) { %y = ai.onnx.ml::FeatureVectorizer(%x, _) {inputdimensions=[3, 3]} }",
     "input 1 is left out"},
    {"(%x: f32[1x3]) -> (%y) { %y = ai.onnx.ml::FeatureVectorizer(%x, string[1]{\"a\"}) {inputdimensions=[3, "
     "3]} }",
     "input 1 has dtype string"},
    {"(%x: f32[2x3]) -> (%y) { %l, %y = ai.onnx.ml::SVMClassifier(%x) {classlabels_ints=[7], "
     "vectors_per_class=[1], support_vectors=floats[1, 2, 3], coefficients=floats[1], rho=floats[1]} }",
     "one class label"},
    {"(%x: f32[2x3]) -> (%y) { %y = ai.onnx.ml::FeatureVectorizer(%x, %x) {inputdimensions=[3]} }",
     "for 2 inputs"},
    {TREE("0", "0", "1", "0", "0", ", post_transform=5"), "expected 0 to 4"},
    {TREE("0", "0", "1", "0", "0", ", aggregate_function=4"), "expected 0 to 3"},
    {"(%x: f32[2]) -> (%y) { %y = ai.onnx.ml::ArrayFeatureExtractor(%x, i64[1]{2}) }", "Y has 2"},
    {"(%x: f32[2]) -> (%y) { %y = ai.onnx.ml::ArrayFeatureExtractor(%x, i64[1]{-1}) }", "Y has -1"},
    {"(%x: f32[3]) -> (%y) { %y = ai.onnx.ml::Scaler(%x) {offset=floats[1, 2], scale=floats[2]} }",
     "offset has 2"},
    {"(%x: f32[1x1x3]) -> (%y) { %y = ai.onnx.ml::Normalizer(%x) }", "3 dimensions"},
    {"(%x: f32[3]) -> (%y) { %y = ai.onnx.ml::Normalizer(%x) {norm=\"L3\"} }", "L3"},
    {"(%x: f32[3]) -> (%y) { %y = ai.onnx.ml::LinearRegressor(%x) {coefficients=floats[1, 2]} }",
     "3 features"},
    {"(%x: f32[3]) -> (%y) { %y = ai.onnx.ml::LabelEncoder(%x) {keys_int64s=[1], values_int64s=[1]} }",
     "the keys are i64"},
    {"(%x: f32[3]) -> (%y) { %y = ai.onnx.ml::LabelEncoder(%x) {keys_floats=floats[1], values_int64s=[1, 2]} "
     "}",
     "1 keys and 2 values"},
};

static void wrong_nodes_are_refused(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(NULL, &engine, &e), HONE_OK);
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    hone_plan *plan = NULL;
    hone_context *context = NULL;
    hone_status s = start(refused[k].graph, true, engine, &plan, &e);
    if (!s) { /* what only shows when it runs */
      double zero[8] = {0};
      const hone_tensor x = {*hone_plan_input_desc(plan, 0), zero};
      assert_int_equal(hone_context_create(plan, &context, &e), HONE_OK);
      s = hone_context_run(context, (const hone_tensor *[]){&x}, NULL, &e);
    }
    if (!s || !strstr(e.what, refused[k].says)) fail_msg("%s: %d '%s'", refused[k].graph, s, e.what);
    hone_context_destroy(context);
    hone_plan_destroy(plan);
  }
  hone_engine_destroy(engine);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(right_answers),
                                     cmocka_unit_test(wrong_nodes_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
