/* BeamSearch: what ONNX Runtime 1.32 gives for each text alone. Where texts come together and none is stopped
 * early, it looks at another text's scores to find out whether a text can become better; here it does not.
 * Sampling: of one word left it is GreedySearch, and of more it draws those that it should. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "search_net.h"

#include <stdio.h>
#include <string.h>

enum { RETURNS = 3 };

typedef struct search {
  const char *name, *takes, *says;
  int64_t length, returns;
  int32_t want[TEXTS * RETURNS * MOST];
  float score[TEXTS * RETURNS];
} search;

static const search searches[] = {
    {"one beam",
     "i32[1]{10}, i32[1]{0}, i32[1]{1}",
     "eos_token_id=8",
     10,
     1,
     {1, 2, 3, 5, 0, 0, 0, 0, 0, 0, 4, 5, 6, 3, 4, 5, 5, 0, 0, 0, 0, 0, 7, 6, 3, 3, 4, 5, 5, 0},
     {-0.48030f, -0.29760f, -0.31691f}},
    {"four beams",
     "i32[1]{10}, _, i32[1]{4}, i32[1]{2}",
     "eos_token_id=8",
     10,
     2,
     {1, 2, 3, 3, 4, 5, 5, 5, 3, 4, 1, 2, 3, 3, 4, 5, 5, 5, 3, 5, 4, 5, 6, 3, 4, 5, 5, 0, 0, 0,
      4, 5, 6, 3, 4, 5, 0, 0, 0, 0, 0, 0, 7, 6, 3, 3, 4, 5, 0, 0, 0, 0, 7, 6, 3, 3, 4, 5, 5, 0},
     {-0.31199f, -0.31199f, -0.29760f, -0.30434f, -0.31531f, -0.31691f}},
    {"stops early",
     "i32[1]{14}, i32[1]{0}, i32[1]{3}, i32[1]{3}",
     "eos_token_id=5, early_stopping=1",
     14,
     3,
     {1, 2, 3, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 1,
      4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 4, 5, 6, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 6, 3, 3, 4, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 7, 6, 8, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 6, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
     {-0.24299f, -0.27574f, -0.57857f, -0.14912f, -0.47157f, -0.85673f, -0.21529f, -0.43139f, -0.45730f}},
    {"long texts",
     "i32[1]{12}, i32[1]{0}, i32[1]{3}, _, f32[1]{3}",
     "eos_token_id=5",
     12,
     1,
     {1, 2, 3, 3, 4, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 8, 8, 8,
      8, 8, 3, 8, 8, 8, 0, 0, 7, 6, 8, 8, 8, 8, 8, 8, 3, 8},
     {-0.00972f, -0.00235f, -0.00176f}},
    {"penalties",
     "i32[1]{10}, i32[1]{6}, i32[1]{3}, i32[1]{2}, f32[1]{0.5}, f32[1]{1.5}",
     "eos_token_id=5",
     10,
     2,
     {1, 2, 3, 8, 8, 8, 8, 8, 3, 8, 1, 2, 3, 8, 8, 8, 0, 0, 0, 0, 4, 5, 6, 8, 8, 8, 8, 8, 3, 8,
      4, 5, 6, 8, 8, 8, 8, 8, 3, 3, 0, 0, 7, 6, 3, 3, 4, 0, 0, 0, 0, 0, 7, 6, 8, 8, 8, 8, 8, 8},
     {-2.32238f, -2.43055f, -1.08644f, -1.67937f, -0.65413f, -0.98037f}},
    {"no pairs twice",
     "i32[1]{12}, i32[1]{0}, i32[1]{2}",
     "eos_token_id=8, no_repeat_ngram_size=2",
     12,
     1,
     {1, 2, 3, 3, 4, 5, 5, 0, 0, 0, 0, 0, 4, 5, 6, 5, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 7, 6, 3, 3, 4, 5, 0, 0, 0, 0},
     {-0.40294f, -0.49154f, -0.31531f}},
    {"words",
     "i32[1]{9}, _, i32[1]{2}, _, _, _, i32[9]{1, 1, 1, 0, 1, 1, 0, 1, 1}, i32[3x9]{0, 0, 0, 0, 0, 0, 1, 1, "
     "1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}",
     "eos_token_id=8",
     9,
     1,
     {1, 2, 3, 0, 0, 0, 0, 0, 0, 4, 5, 6, 5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 4, 5, 4, 5, 5},
     {-1.27574f, -0.49154f, -0.59859f}},
    {"mask",
     "i32[1]{9}, _, i32[1]{3}, _, _, _, _, _, i32[3x3]{1, 1, 1, 0, 1, 1, 0, 0, 1}",
     "eos_token_id=8",
     9,
     1,
     {1, 2, 3, 3, 4, 5, 5, 5, 3, 4, 5, 6, 3, 4, 5, 0, 0, 0, 0, 0, 7, 6, 3, 3, 4, 5, 5},
     {-0.23673f, -0.26185f, -0.25249f}},
};

static net_session open_search(const char *type, const char *makes, const char *takes, const char *says,
                               int level, bool reference) {
  char text[8192];
  snprintf(text, sizeof text,
           DOMAIN
           "graph g(%%ids: i32[3x3]) -> (%s) {\n  %s = com.microsoft::%s(%%ids, %s) {pad_token_id=0, %s, "
           "decoder=%s}\n}\n",
           makes, makes, type, takes, says, DECODER);
  return net_open(net_parse("search", text), level, reference, 1);
}

static void run(net_session *s, const char *name) {
  const hone_tensor ids = prompts(), *list[] = {&ids};
  hone_error e = {0};
  if (hone_context_run(s->context, list, NULL, &e) != HONE_OK) fail_msg("%s: %s: %s", name, e.where, e.what);
}

static void test_beams(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
    for (int way = 0; way < 3; way++) {
      const search *c = &searches[i];
      net_session s = open_search("BeamSearch", "%y, %score", c->takes, c->says, way == 1 ? 0 : 2, way == 2);
      run(&s, c->name);
      const hone_tensor *got = hone_context_output(s.context, 0), *score = hone_context_output(s.context, 1);
      assert_int_equal(got->desc.rank, 3);
      assert_int_equal(got->desc.dim[1], c->returns);
      assert_int_equal(got->desc.dim[2], c->length);
      for (int64_t k = 0; k < TEXTS * c->returns * c->length; k++)
        if (((const int32_t *)got->data)[k] != c->want[k])
          fail_msg("%s: token %lld is %d, not %d", c->name, (long long)k, ((const int32_t *)got->data)[k],
                   c->want[k]);
      assert_int_equal(hone_desc_count(&score->desc), TEXTS * c->returns);
      for (int64_t k = 0; k < TEXTS * c->returns; k++)
        if (!(fabsf(((const float *)score->data)[k] - c->score[k]) <= 2e-5f))
          fail_msg("%s: score %lld is %g, not %g", c->name, (long long)k, ((const float *)score->data)[k],
                   c->score[k]);
      net_close(&s);
    }
}

/* Scores of all words: probabilities of the first step, of one beam alone, and nothing for steps not made. */
static void test_scores(void **state) {
  (void)state;
  net_session s = open_search("BeamSearch", "%y, %score, %all", "i32[1]{16}, _, i32[1]{2}",
                              "eos_token_id=5, early_stopping=1", 2, false);
  run(&s, "scores");
  const hone_tensor *all = hone_context_output(s.context, 2);
  const int64_t want[4] = {13, TEXTS, 2, 9};
  assert_int_equal(all->desc.rank, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(all->desc.dim[i], want[i]);
  const float *v = all->data;
  for (int text = 0; text < TEXTS; text++) {
    double sum = 0;
    for (int w = 0; w < 9; w++) {
      sum += exp(v[text * 18 + w]);
      assert_true(v[text * 18 + 9 + w] < -1e8f);
      assert_true(v[(12 * TEXTS + text) * 18 + w] == 0);
    }
    assert_true(fabs(sum - 1) < 1e-5);
  }
  net_close(&s);
}

/* One word left is the likeliest: what GreedySearch gives. Of equal words the way that is not custom keeps
 * the last, so it has texts without such. */
static void test_one_left(void **state) {
  (void)state;
  static const char *const ways[] = {"top_p=0.00001, min_tokens_to_keep=1", "top_p=0.00001, custom=1",
                                     "top_p=0.00001, custom=1, temperature=2.5"};
  static const struct {
    const char *takes, *says;
    size_t from;
  } like[] = {{"i32[1]{10}", "eos_token_id=8", 1},
              {"i32[1]{10}, i32[1]{9}", "eos_token_id=5", 1},
              {"i32[1]{12}, _, f32[1]{1.5}", "eos_token_id=8, no_repeat_ngram_size=2", 0}};
  for (size_t i = 0; i < sizeof like / sizeof *like; i++)
    for (size_t way = like[i].from; way < sizeof ways / sizeof *ways; way++) {
      char says[160];
      snprintf(says, sizeof says, "%s, %s", like[i].says, ways[way]);
      net_session greedy = open_search("GreedySearch", "%y", like[i].takes, like[i].says, 2, false),
                  sampling = open_search("Sampling", "%y", like[i].takes, says, 2, false);
      run(&greedy, "greedy");
      run(&sampling, says);
      const hone_tensor *a = hone_context_output(greedy.context, 0),
                        *b = hone_context_output(sampling.context, 0);
      assert_int_equal(hone_desc_count(&a->desc), hone_desc_count(&b->desc));
      assert_memory_equal(a->data, b->data, (size_t)hone_desc_bytes(&a->desc));
      net_close(&greedy);
      net_close(&sampling);
    }
}

/* Which words of a row should be left, by the words' order from the least likely on, as it is defined. */
static void left_of(const float *score, float top_p, int least, bool custom, bool *left) {
  int order[9];
  float p[9], sum = 0;
  for (int i = 0; i < 9; i++) {
    int at = i;
    for (; at > 0 && (custom ? score[i] > score[order[at - 1]] : score[i] < score[order[at - 1]]); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
  for (int i = 0; i < 9; i++) sum += p[i] = expf(score[order[i]]);
  for (int i = 0; i < 9; i++) left[i] = true;
  float run = 0;
  for (int i = 0; i < 9; i++) {
    run += p[i] / sum;
    if (custom && i < 8 && run > top_p) left[order[i + 1]] = false;
    if (!custom && i < 9 - least && run <= 1 - top_p) left[order[i]] = false;
  }
}

static void test_drawn(void **state) {
  (void)state;
  static const struct {
    float top_p;
    int least;
    bool custom;
  } rules[] = {{0.9f, 0, false}, {0.6f, 3, false}, {0.05f, 1, false}, {0.9f, 0, true}, {0.5f, 0, true}};
  net_session open = open_search("Sampling", "%y, %left", "i32[1]{4}", "eos_token_id=8, top_p=1.0", 2, false);
  run(&open, "nothing filtered");
  float score[TEXTS * 9];
  memcpy(score, hone_context_output(open.context, 1)->data, sizeof score);
  net_close(&open);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    bool want[TEXTS][9], met[TEXTS][9] = {{false}};
    for (int b = 0; b < TEXTS; b++)
      left_of(score + b * 9, rules[i].top_p, rules[i].least, rules[i].custom, want[b]);
    for (int seed = 0; seed < 200; seed++) {
      char takes[80], says[160];
      snprintf(takes, sizeof takes, "i32[1]{4}, _, _, _, _, _, _, i32[1]{%d}", seed);
      snprintf(says, sizeof says, "eos_token_id=20, top_p=%g, min_tokens_to_keep=%d, custom=%d",
               rules[i].top_p, rules[i].least, rules[i].custom);
      net_session s = open_search("Sampling", "%y, %left", takes, says, 0, false);
      run(&s, says);
      const int32_t *text = hone_context_output(s.context, 0)->data;
      const float *left = hone_context_output(s.context, 1)->data;
      for (int b = 0; b < TEXTS; b++) {
        met[b][text[b * 4 + 3]] = true;
        for (int w = 0; w < 9; w++)
          if ((left[b * 9 + w] > -1e19f) != want[b][w])
            fail_msg("rule %zu, text %d: word %d is %g", i, b, w, left[b * 9 + w]);
      }
      net_close(&s);
    }
    for (int b = 0; b < TEXTS; b++) {
      int kinds = 0, n = 0;
      for (int w = 0; w < 9; w++) {
        if (met[b][w] && !want[b][w]) fail_msg("rule %zu, text %d: word %d was drawn", i, b, w);
        kinds += met[b][w], n += want[b][w];
      }
      if (n > 1 && kinds < 2) fail_msg("rule %zu, text %d: one word was drawn of %d", i, b, n);
    }
  }
}

/* What a word is present counts against it, and the temperature divides. */
static void test_present(void **state) {
  (void)state;
  float v[2][TEXTS * 9];
  static const char *const says[] = {"eos_token_id=8, top_p=1.0",
                                     "eos_token_id=8, top_p=1.0, presence_penalty=0.75, temperature=2.0"};
  for (int i = 0; i < 2; i++) {
    net_session s =
        open_search("Sampling", "%y, %left",
                    "i32[1]{4}, _, _, _, _, _, i32[3x9]{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, "
                    "0, 0, 0, 0, 0, 0, 0, 0, 0, 1}",
                    says[i], 2, false);
    run(&s, says[i]);
    memcpy(v[i], hone_context_output(s.context, 1)->data, sizeof v[i]);
    net_close(&s);
  }
  for (int k = 0; k < TEXTS * 9; k++) {
    const bool present = k == 0 || k == 10 || k == 26;
    if (!(fabsf(v[0][k] / 2 - (present ? 0.75f : 0) - v[1][k]) < 1e-5f))
      fail_msg("%d: %g, %g", k, v[0][k], v[1][k]);
  }
}

/* What cannot be. */
static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *type, *takes, *why;
  } wrong[] = {{"BeamSearch", "i32[1]{9}, _, i32[1]{0}", "num_beams is 0"},
               {"BeamSearch", "i32[1]{9}, _, i32[1]{2}, i32[1]{3}", "num_return_sequences is 3"},
               {"BeamSearch", "i32[1]{9}, _, i32[1]{2}, _, i32[1]{1}", "must be one"},
               {"BeamSearch", "i32[1]{3}, _, i32[1]{2}", "max_length is 3"},
               {"Sampling", "i32[1]{9}, _, _, _, _, _, i32[4]{1, 1, 1, 1}", "presence_mask"},
               {"Sampling", "i32[1]{9}, _, _, _, _, _, _, i32[2]{1, 1}", "must be one"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    net_session s = open_search(wrong[i].type, "%y", wrong[i].takes, "eos_token_id=8", 2, false);
    const hone_tensor ids = prompts(), *list[] = {&ids};
    hone_error e = {0};
    assert_int_equal(hone_context_run(s.context, list, NULL, &e), HONE_ERROR_INPUT);
    if (!strstr(e.what, wrong[i].why)) fail_msg("%s: %s", wrong[i].why, e.what);
    net_close(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_beams),    cmocka_unit_test(test_scores),
                                     cmocka_unit_test(test_one_left), cmocka_unit_test(test_drawn),
                                     cmocka_unit_test(test_present),  cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
