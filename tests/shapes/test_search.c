/* GreedySearch: what ONNX Runtime 1.32 gives. Behind the place where all texts have ended its result is
 * undefined; here that is padding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "search_net.h"

#include <stdio.h>
#include <string.h>

typedef struct search {
  const char *name, *takes, *says;
  int64_t length;
  int32_t want[TEXTS * MOST];
} search;

static const search searches[] = {
    {"plain", "i32[1]{10}", "eos_token_id=8, no_repeat_ngram_size=0", 10, {1, 2, 3, 5, 0, 0, 0, 0, 0, 0,
                                                                           4, 5, 6, 3, 4, 5, 5, 0, 0, 0,
                                                                           0, 0, 7, 6, 3, 3, 4, 5, 5, 0}},
    {"ends early", "i32[1]{14}", "eos_token_id=5, no_repeat_ngram_size=0", 14, {1, 2, 3, 0, 0, 0, 0, 0, 0,
                                                                                0, 0, 0, 0, 0, 4, 5, 6, 3,
                                                                                4, 0, 0, 0, 0, 0, 0, 0, 0,
                                                                                0, 0, 0, 7, 6, 3, 3, 4, 0,
                                                                                0, 0, 0, 0, 0, 0}},
    {"shortest",
     "i32[1]{10}, i32[1]{9}",
     "eos_token_id=5, no_repeat_ngram_size=0",
     10,
     {1, 2, 3, 3, 4, 2, 4, 8, 3, 4, 4, 5, 6, 3, 4, 8, 8, 8, 3, 8, 0, 0, 7, 6, 3, 3, 4, 8, 8, 8}},
    {"penalty",
     "i32[1]{10}, _, f32[1]{1.5}",
     "eos_token_id=8, no_repeat_ngram_size=0",
     10,
     {1, 2, 3, 5, 0, 0, 0, 0, 0, 0, 4, 5, 6, 3, 4, 5, 0, 0, 0, 0, 0, 0, 7, 6, 3, 5, 0, 0, 0, 0}},
    {"no pairs twice", "i32[1]{12}", "eos_token_id=8, no_repeat_ngram_size=2", 12, {1, 2, 3, 5, 0, 0, 0, 0,
                                                                                    0, 0, 0, 0, 4, 5, 6, 3,
                                                                                    4, 0, 0, 0, 0, 0, 0, 0,
                                                                                    0, 0, 7, 6, 3, 3, 4, 5,
                                                                                    5, 0, 0, 0}},
    {"words",
     "i32[1]{10}, _, _, i32[9]{1, 1, 1, 0, 1, 1, 0, 1, 1}, i32[3x9]{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}",
     "eos_token_id=8, no_repeat_ngram_size=0",
     10,
     {1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 5, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 4, 5, 0, 0, 0, 0}},
    {"mask",
     "i32[1]{10}, _, _, _, _, i32[3x3]{1, 1, 1, 0, 1, 1, 0, 0, 1}",
     "eos_token_id=8, no_repeat_ngram_size=0",
     10,
     {1, 2, 3, 5, 0, 0, 0, 0, 0, 0, 4, 5, 6, 3, 4, 5, 0, 0, 0, 0, 0, 0, 7, 6, 3, 3, 4, 5, 5, 0}},
    {"penalty below 1, no word twice",
     "i32[1]{8}, _, f32[1]{0.75}",
     "eos_token_id=8, no_repeat_ngram_size=1",
     8,
     {1, 2, 3, 5, 0, 0, 0, 0, 4, 5, 6, 3, 0, 0, 0, 0, 0, 0, 7, 6, 3, 5, 0, 0}},
};

static net_session open_search(const search *c, int level, bool reference) {
  char text[8192];
  snprintf(text, sizeof text,
           DOMAIN "graph g(%%ids: i32[3x3]) -> (%%y) {\n  %%y = com.microsoft::GreedySearch(%%ids, %s) "
                  "{pad_token_id=0, %s, "
                  "decoder=%s}\n}\n",
           c->takes, c->says, DECODER);
  return net_open(net_parse("search", text), level, reference, 1);
}

static void test_answers(void **state) {
  (void)state;
  const hone_tensor ids = {hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){TEXTS, PROMPT}), prompt},
                    *list[] = {&ids};
  for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
    for (int way = 0; way < 3; way++) {
      const search *c = &searches[i];
      net_session s = open_search(c, way == 1 ? 0 : 2, way == 2);
      hone_error e = {0};
      for (int again = 0; again < 2; again++) {
        if (hone_context_run(s.context, list, NULL, &e) != HONE_OK)
          fail_msg("%s: %s: %s", c->name, e.where, e.what);
        const hone_tensor *got = hone_context_output(s.context, 0);
        assert_int_equal(got->desc.rank, 2);
        assert_int_equal(got->desc.dim[0], TEXTS);
        assert_int_equal(got->desc.dim[1], c->length);
        for (int64_t k = 0; k < TEXTS * c->length; k++)
          if (((const int32_t *)got->data)[k] != c->want[k])
            fail_msg("%s: token %lld is %d, not %d", c->name, (long long)k, ((const int32_t *)got->data)[k],
                     c->want[k]);
      }
      net_close(&s);
    }
}

/* What cannot be: found when the model is read, or by the run. */
static void test_refusals(void **state) {
  (void)state;
  static const search wrong[] = {
      {"max_length is 3", "i32[1]{3}", "eos_token_id=8", 0, {0}},
      {"does not have 9", "i32[1]{9}, _, _, i32[4]{1, 1, 1, 1}", "eos_token_id=8", 0, {0}},
      {"above 0", "i32[1]{9}, _, f32[1]{0}", "eos_token_id=8", 0, {0}},
      {"must be one", "i32[2]{9, 9}", "eos_token_id=8", 0, {0}},
  };
  const hone_tensor ids = {hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){TEXTS, PROMPT}), prompt},
                    *list[] = {&ids};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    net_session s = open_search(&wrong[i], 2, false);
    hone_error e = {0};
    assert_int_equal(hone_context_run(s.context, list, NULL, &e), HONE_ERROR_INPUT);
    if (!strstr(e.what, wrong[i].name)) fail_msg("%s: %s", wrong[i].name, e.what);
    net_close(&s);
  }
}

/* A run's limits hold in the decoder. */
static void test_limits(void **state) {
  (void)state;
  net_session s = open_search(&searches[0], 2, false);
  const hone_tensor ids = {hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){TEXTS, PROMPT}), prompt},
                    *list[] = {&ids};
  hone_error e = {0};
  assert_int_equal(hone_context_run(s.context, list, &(hone_run_options){.max_nodes = 20}, &e),
                   HONE_ERROR_BUDGET);
  assert_int_equal(hone_context_run(s.context, list, NULL, &e), HONE_OK);
  net_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
