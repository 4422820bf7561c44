/* BeamSearch and WhisperBeamSearch behind an encoder, of text and of sound: what ONNX Runtime 1.32 gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "search_net.h"

#include <stdio.h>
#include <string.h>

/* Keys and values of self and cross attention, and logits in which they, the word and the states have a say.
 */
#define KEPT                                                                                                 \
  "  %nf = Cast(%ids) {to=1}\n  %nk = Unsqueeze(%nf, i64[2]{1, 3})\n  %nn = Mul(%nk, %nk)\n"                 \
  "  %nv = Mul(%nn, f32{0.125})\n"
#define CROSS                                                                                                \
  "  %h1 = ReduceSum(%hid, i64[1]{2}) {keepdims=0}\n  %h2 = Unsqueeze(%h1, i64[2]{1, 3})\n"                  \
  "  %ck = Mul(%h2, f32{0.125})\n  %cv = Neg(%ck)\n"
#define SEEN "  %m = Cast(%mask) {to=1}\n  %mu = Unsqueeze(%m, i64[1]{2})\n  %hm = Mul(%hid, %mu)\n"
#define HEARD "  %hm = Identity(%hid)\n"
#define LOGITS                                                                                               \
  "  %a = Gather(" BY_WORD ", %ids)\n  %hs = ReduceSum(%hm, i64[1]{1})\n"                                    \
  "  %p = ReduceSum(%pk, i64[3]{1, 2, 3}) {keepdims=0}\n  %q = ReduceSum(%pv, i64[3]{1, 2, 3}) "             \
  "{keepdims=0}\n"                                                                                           \
  "  %d = Sub(%p, %q)\n  %du = Unsqueeze(%d, i64[2]{1, 2})\n  %dv = Mul(%du, " BY_PAST ")\n"                 \
  "  %e1 = ReduceSum(%ck, i64[3]{1, 2, 3}) {keepdims=0}\n  %e2 = ReduceSum(%cv, i64[2]{2, 3}) "              \
  "{keepdims=0}\n"                                                                                           \
  "  %e3 = ReduceMax(%e2) {axes=[1], keepdims=0}\n  %e = Add(%e1, %e3)\n  %eu = Unsqueeze(%e, i64[2]{1, "    \
  "2})\n"                                                                                                    \
  "  %ev = Mul(%eu, " BY_MASK ")\n  %l1 = Add(%a, %hs)\n  %l2 = Add(%l1, %dv)\n  %logits = Add(%l2, %ev)\n"
#define FIRST "  %pk = Identity(%nk)\n  %pv = Identity(%nv)\n"
#define NEXT "  %pk = Concat(%was_k, %nk) {axis=2}\n  %pv = Concat(%was_v, %nv) {axis=2}\n"
#define PASTS "%was_k: f32[?x1x?x1], %was_v: f32[?x1x?x1], %ck: f32[?x1x?x1], %cv: f32[?x1x?x1]"
#define OF_KEYS "  %h0 = Squeeze(%ck, i64[1]{1})\n  %hid = Mul(%h0, " BY_MASK ")\n"

/* An encoder that begins the decoder's work, and whose states the decoder reads. */
#define OLD                                                                                                  \
  "encoder=graph enc(%src: i32[?x?], %mask: i32[?x?], %ids: i32[?x?]) -> (%logits, %hid, %pk, %pv, %ck, "    \
  "%cv) {\n  %hid = Gather(" BY_PLACE ", %src)\n" CROSS KEPT FIRST SEEN LOGITS                               \
  "}, decoder=graph dec(%ids: i32[?x1], %mask: i32[?x?], %hid: f32[?x?x9], " PASTS                           \
  ") -> (%logits, %pk, %pv) {\n" KEPT NEXT SEEN LOGITS "}"
/* One that gives keys and values of cross attention alone. */
#define KEYS                                                                                                 \
  "encoder=graph enc(%src: i32[?x?], %mask: i32[?x?]) -> (%ck, %cv) {\n  %hid = Gather(" BY_PLACE            \
  ", %src)\n" CROSS "}, decoder=graph dec(%ids: i32[?x1], %mask: i32[?x?], " PASTS                           \
  ") -> (%logits, %pk, %pv) {\n" KEPT NEXT OF_KEYS SEEN LOGITS "}"
/* One of sound. */
#define SOUND                                                                                                \
  "encoder=graph enc(%src: f32[?x9x?], %ids: i32[?x?]) -> (%logits, %hid, %pk, %pv, %ck, %cv) {\n"           \
  "  %hid = Transpose(%src) {perm=[0, 2, 1]}\n" CROSS KEPT FIRST HEARD LOGITS                                \
  "}, decoder=graph dec(%ids: i32[?x1], " PASTS                                                              \
  ") -> (%logits, %pk, %pv) {\n" KEPT NEXT OF_KEYS HEARD LOGITS "}"

enum { SOUNDS = 2, LENGTH = 4, RETURNS = 2 };

typedef struct search {
  const char *name, *graphs, *type, *takes, *says;
  int64_t length, returns;
  int32_t want[TEXTS * RETURNS * MOST];
  float score[TEXTS * RETURNS];
} search;

static const search searches[] = {
    {"text",
     OLD,
     "BeamSearch",
     "i32[1]{9}, i32[1]{0}, i32[1]{1}, i32[1]{1}, f32[1]{1}",
     "eos_token_id=8, early_stopping=1",
     9,
     1,
     {2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 4, 5, 5, 2, 4, 7, 7, 7, 7, 7, 7, 7},
     {-0.59541f, -0.67461f, -0.52277f}},
    {"beams",
     OLD,
     "BeamSearch",
     "i32[1]{8}, i32[1]{0}, i32[1]{3}, i32[1]{2}, f32[1]{1.5}",
     "eos_token_id=5, early_stopping=1",
     8,
     2,
     {2, 1, 1, 3, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 2, 4, 0, 0, 0, 0, 0,
      2, 4, 0, 0, 0, 0, 0, 0, 2, 4, 7, 7, 7, 7, 7, 7, 2, 4, 7, 7, 7, 7, 7, 3},
     {-0.19854f, -0.20110f, -0.37114f, -0.43731f, -0.18131f, -0.21480f}},
    {"mask",
     OLD,
     "BeamSearch",
     "i32[1]{7}, i32[1]{0}, i32[1]{2}, i32[1]{1}, f32[1]{1}, _, _, _, i32[3x3]{1, 0, 1, 1, 1, 0, 1, 0, 1}",
     "eos_token_id=8, early_stopping=1",
     7,
     1,
     {2, 4, 7, 0, 0, 0, 0, 2, 0, 4, 5, 5, 5, 5, 2, 0, 7, 7, 7, 7, 7},
     {-0.81317f, -0.80030f, -0.46336f}},
    {"keys alone",
     KEYS,
     "BeamSearch",
     "i32[1]{8}, i32[1]{5}, i32[1]{3}, i32[1]{2}, f32[1]{1}",
     "eos_token_id=3, early_stopping=1",
     8,
     2,
     {2, 0, 4, 7, 6, 7, 6, 7, 2, 0, 4, 7, 6, 7, 8, 8, 2, 0, 4, 5, 8, 8, 8, 8,
      2, 2, 0, 4, 5, 8, 8, 8, 2, 0, 4, 7, 6, 7, 6, 7, 2, 0, 4, 7, 6, 7, 8, 8},
     {-0.88044f, -0.89506f, -0.81513f, -0.85598f, -0.84104f, -0.88400f}},
    {"rules",
     KEYS,
     "BeamSearch",
     "i32[1]{9}, i32[1]{0}, i32[1]{2}, i32[1]{1}, f32[1]{1}, f32[1]{1.5}, i32[9]{1, 1, 1, 0, 1, 1, 1, 1, 1}",
     "eos_token_id=8, early_stopping=1, no_repeat_ngram_size=2",
     9,
     1,
     {2, 0, 4, 7, 0, 0, 0, 0, 0, 2, 0, 4, 5, 0, 0, 0, 0, 0, 2, 0, 4, 7, 0, 0, 0, 0, 0},
     {-1.02438f, -0.94516f, -1.01834f}},
    {"sound",
     SOUND,
     "BeamSearch",
     "i32[1]{7}, i32[1]{0}, i32[1]{2}, i32[1]{1}, f32[1]{1}",
     "eos_token_id=8, early_stopping=1",
     7,
     1,
     {1, 7, 6, 7, 6, 7, 0, 1, 7, 6, 7, 6, 0, 0},
     {-1.03729f, -1.15807f}},
    {"words first",
     SOUND,
     "WhisperBeamSearch",
     "i32[1]{9}, i32[1]{0}, i32[1]{2}, i32[1]{2}, f32[1]{1}, _, _, _, _, i32[2x2]{2, 4, 3, 1}",
     "eos_token_id=8, early_stopping=1",
     9,
     2,
     {2, 4, 7, 0, 0, 0, 0, 0, 0, 2, 4, 7, 6, 0, 0, 0, 0, 0,
      3, 1, 7, 6, 7, 0, 0, 0, 0, 3, 1, 7, 6, 7, 6, 7, 0, 0},
     {-0.73250f, -0.83254f, -0.92169f, -0.95875f}},
    {"moments",
     SOUND,
     "WhisperBeamSearch",
     "i32[1]{12}, i32[1]{0}, i32[1]{2}, i32[1]{1}, f32[1]{1}, _, _, _, _, i32[2x2]{1, 2, 1, 2}, i32[1]{1}",
     "eos_token_id=4, early_stopping=1, beginning_timestamp_token_id=5, no_timestamps_token_id=3, "
     "translate_token_id=0, transcribe_token_id=2",
     12,
     1,
     {1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
     {-0.54428f, -0.40091f}},
    {"moments, warm",
     SOUND,
     "WhisperBeamSearch",
     "i32[1]{12}, i32[1]{0}, i32[1]{2}, i32[1]{1}, f32[1]{1}, _, _, _, _, i32[2x2]{1, 2, 1, 2}, i32[1]{1}, "
     "_, _, f32[1]{2}",
     "eos_token_id=4, early_stopping=1, beginning_timestamp_token_id=5, no_timestamps_token_id=3, "
     "translate_token_id=0, transcribe_token_id=2",
     12,
     1,
     {1, 2, 6, 0, 7, 7, 0, 0, 0, 0, 0, 0, 1, 2, 0, 7, 2, 0, 0, 0, 0, 0, 0, 0},
     {-0.94617f, -0.65436f}},
};

static float sounds[SOUNDS * 9 * LENGTH];

static hone_tensor first_input(bool sound) {
  if (!sound) return prompts();
  for (int i = 0; i < SOUNDS * 9 * LENGTH; i++) sounds[i] = (float)(i * 7 % 11 - 5) / 8;
  return (hone_tensor){hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){SOUNDS, 9, LENGTH}), sounds};
}

static bool is_sound(const char *graphs) { return strstr(graphs, "%src: f32") != NULL; }

static net_session open_search(const char *graphs, const char *type, const char *makes, const char *takes,
                               const char *says, int level, bool reference) {
  char text[16384], shown[64] = "";
  const bool sound = is_sound(graphs);
  const char *gap = strstr(makes, "_, "); /* an output that the node leaves out */
  snprintf(shown, sizeof shown, "%.*s%s", gap ? (int)(gap - makes) : 64, makes, gap ? gap + 3 : "");
  snprintf(text, sizeof text,
           DOMAIN "graph g(%%first: %s) -> (%s) {\n  %s = com.microsoft::%s(%%first, %s) {pad_token_id=0, "
                  "decoder_start_token_id=%d, model_type=%d, %s, %s}\n}\n",
           sound ? "f32[2x9x4]" : "i32[3x3]", shown, makes, type, takes, sound ? 1 : 2, sound ? 2 : 1, says,
           graphs);
  return net_open(net_parse("search", text), level, reference, 1);
}

static void run(net_session *s, const search *c) {
  const hone_tensor first = first_input(is_sound(c->graphs)), *list[] = {&first};
  hone_error e = {0};
  if (hone_context_run(s->context, list, NULL, &e) != HONE_OK)
    fail_msg("%s: %s: %s", c->name, e.where, e.what);
}

static void test_answers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
    for (int way = 0; way < 3; way++) {
      const search *c = &searches[i];
      net_session s =
          open_search(c->graphs, c->type, "%y, %score", c->takes, c->says, way == 1 ? 0 : 2, way == 2);
      run(&s, c);
      const int64_t texts = is_sound(c->graphs) ? SOUNDS : TEXTS;
      const hone_tensor *got = hone_context_output(s.context, 0), *score = hone_context_output(s.context, 1);
      assert_int_equal(hone_desc_count(&got->desc), texts * c->returns * c->length);
      assert_int_equal(hone_desc_count(&score->desc), texts * c->returns);
      for (int64_t k = 0; k < texts * c->returns * c->length; k++)
        if (((const int32_t *)got->data)[k] != c->want[k])
          fail_msg("%s: token %lld is %d, not %d", c->name, (long long)k, ((const int32_t *)got->data)[k],
                   c->want[k]);
      for (int64_t k = 0; k < texts * c->returns; k++)
        if (!(fabsf(((const float *)score->data)[k] - c->score[k]) <= 2e-5f))
          fail_msg("%s: score %lld is %g, not %g", c->name, (long long)k, ((const float *)score->data)[k],
                   c->score[k]);
      net_close(&s);
    }
}

/* A search for one word at a time finds what one beam finds, as long as no text ends. */
static void test_greedy(void **state) {
  (void)state;
  static const char *const graphs[] = {OLD, KEYS};
  for (int i = 0; i < 2; i++) {
    const search c = {.name = "greedy", .graphs = graphs[i]};
    net_session beam = open_search(graphs[i], "BeamSearch", "%y", "i32[1]{9}, _, i32[1]{1}",
                                   "eos_token_id=20", 2, false),
                greedy =
                    open_search(graphs[i], "GreedySearch", "%y", "i32[1]{9}", "eos_token_id=20", 2, false);
    run(&beam, &c);
    run(&greedy, &c);
    const hone_tensor *a = hone_context_output(beam.context, 0), *b = hone_context_output(greedy.context, 0);
    assert_int_equal(hone_desc_count(&a->desc), TEXTS * 9);
    assert_int_equal(hone_desc_count(&b->desc), TEXTS * 9);
    assert_memory_equal(a->data, b->data, TEXTS * 9 * sizeof(int32_t));
    net_close(&beam);
    net_close(&greedy);
  }
}

/* How likely nobody speaks is what the word that says so has of the first step's probabilities. */
static void test_silence(void **state) {
  (void)state;
  double sum = 0;
  for (int w = 0; w < 9; w++) {
    const search c = {.name = "silence", .graphs = SOUND};
    char says[64];
    snprintf(says, sizeof says, "eos_token_id=8, no_speech_token_id=%d", w);
    net_session s = open_search(SOUND, "WhisperBeamSearch", "%y, %score, %all, _, %silence",
                                "i32[1]{5}, _, i32[1]{2}, i32[1]{1}", says, 2, false);
    run(&s, &c);
    const hone_tensor *all = hone_context_output(s.context, 2), *silence = hone_context_output(s.context, 3);
    assert_int_equal(hone_desc_count(&silence->desc), SOUNDS);
    const float got = ((const float *)silence->data)[1];
    assert_true(fabsf(got - expf(((const float *)all->data)[2 * 9 + w])) < 1e-6f);
    sum += got;
    net_close(&s);
  }
  assert_true(fabs(sum - 1) < 1e-5);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *graphs, *type, *takes, *says, *why;
  } wrong[] = {
      {OLD, "BeamSearch", "i32[1]{9}, _, i32[1]{2}, _, _, _, _, _, i32[3x2]{1, 1, 1, 1, 1, 1}",
       "eos_token_id=8", "attention_mask"},
      {OLD, "BeamSearch", "i32[1]{1}, _, i32[1]{2}", "eos_token_id=8", "max_length is 1"},
      {"decoder=graph dec(%ids: i32[?x1], %mask: i32[?x?], " PASTS
       ") -> (%logits, %pk, %pv) {\n" KEPT NEXT OF_KEYS SEEN LOGITS "}",
       "BeamSearch", "i32[1]{9}, _, i32[1]{2}", "eos_token_id=8", "the encoder of BeamSearch has 0 inputs"},
      {"encoder=graph enc(%src: i32[?x?], %mask: i32[?x?]) -> (%src, %mask) {\n}, decoder=graph dec(%ids: "
       "i32[?x1], %mask: i32[?x?]) -> (%ids) {\n}",
       "BeamSearch", "i32[1]{9}, _, i32[1]{2}", "eos_token_id=8", "the decoder of BeamSearch has 2 inputs"},
      {SOUND, "WhisperBeamSearch", "i32[1]{9}, _, i32[1]{2}, i32[1]{1}, _, _, _, _, _, i32[1x2]{1, 2}",
       "eos_token_id=8", "decoder_input_ids"},
      {SOUND, "WhisperBeamSearch", "i32[1]{9}, _, i32[1]{2}, i32[1]{1}, _, _, _, _, _, _, i32[1]{1}",
       "eos_token_id=8", "beginning_timestamp_token_id"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    net_session s =
        open_search(wrong[i].graphs, wrong[i].type, "%y", wrong[i].takes, wrong[i].says, 2, false);
    const hone_tensor first = first_input(is_sound(wrong[i].graphs)), *list[] = {&first};
    hone_error e = {0};
    assert_int_equal(hone_context_run(s.context, list, NULL, &e), HONE_ERROR_INPUT);
    if (!strstr(e.what, wrong[i].why)) fail_msg("%s: %s", wrong[i].why, e.what);
    net_close(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_greedy),
                                     cmocka_unit_test(test_silence), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
