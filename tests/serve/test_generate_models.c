/* Which models generate, and what is said of those that do not. */
#include "generate_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"

#include <string.h>

/* Takes the model. */
static void does_not_generate(hone_model *m, const char *why) {
  hone_server *s = NULL;
  hone_error e = {0};
  assert_int_equal(hone_server_create(engine, NULL, &s, NULL), HONE_OK);
  if (hone_server_add(s, m, &(hone_served_options){.name = "net"}, &e) != HONE_OK)
    fail_msg("%s %s", e.where, e.what);
  wants(s, "/v2/models/net/generate", "{\"input_ids\":[1]}", 400, why);
  hone_model_release(m);
  hone_server_destroy(s);
}

static void not_served(const char *text, const char *why) { does_not_generate(net_parse("net", text), why); }

#define DECODER(inputs, lengths, outputs)                                                                    \
  "opset 17\nopset \"com.microsoft\" 1\ngraph g(%input_ids: i64[BxS], %pk: f32[Bx1xPx4], %pv: "              \
  "f32[Bx1xPx4], " inputs ") -> (" outputs                                                                   \
  ") {\n  const %t: f32[5x4] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}\n"                       \
  "  const %one: i64[1] = {1}\n  const %unit: i64 = {1}\n  %x = Gather(%t, %input_ids)\n" lengths            \
  "  %logits, %ok, %ov = com.microsoft::GroupQueryAttention(%x, %x, %x, %pk, %pv, %n, %m) "                  \
  "{num_heads=1, kv_num_heads=1}\n}\n"

static void other_models_are_told_what_is_missing(void **state) {
  (void)state;
  not_served("opset 17\ngraph g(%x: f32[Nx3]) -> (%y) { %y = Neg(%x) }", "it has no input 'input_ids'");
  not_served("opset 17\ngraph g(%input_ids: i64[NxS]) -> (%y) { %y = Neg(%input_ids) }",
             "no node GroupQueryAttention, Attention, TensorScatter or Concat");
  not_served(DECODER("%n: i32[B], %m: i32[1]", "", "%logits, %ok"), "present_value of node");
  not_served(DECODER("%n: i32[B], %m: i32[1], %z: f32[B]", "", "%logits, %ok, %ov"),
             "input 'z' is none of input_ids");
  not_served(DECODER("%k: i32[B], %m: i32[1]", "  %n = Abs(%k)\n", "%logits, %ok, %ov"),
             "no input 'attention_mask'");
  /* Lengths that are made of the mask in another way, and a mask that is read for more. */
#define SUM "  %s = ReduceSum(%attention_mask, %one) {keepdims=0}\n"
#define WIDTH "  %h = Shape(%attention_mask)\n  %w = Gather(%h, %unit)\n  %m = Cast(%w) {to=6}\n"
  not_served(DECODER("%attention_mask: i64[BxT]", SUM WIDTH "  %n = Cast(%s) {to=6}\n", "%logits, %ok, %ov"),
             "is not the sum of attention_mask less one");
  not_served(DECODER("%attention_mask: i64[BxT]",
                     SUM WIDTH "  %d = Sub(%s, %unit)\n  %n = Cast(%d) {to=6}\n  %q = Neg(%attention_mask)\n",
                     "%logits, %ok, %ov, %q"),
             "for other things than lengths");
  /* What is as long as the server's room, and read by others. */
#define LENGTHS_OF_MASK SUM WIDTH "  %d = Sub(%s, %unit)\n  %n = Cast(%d) {to=6}\n"
  not_served(
      DECODER("%attention_mask: i64[BxT]", LENGTHS_OF_MASK "  %q = Neg(%w)\n", "%logits, %ok, %ov, %q"),
      "the width of attention_mask is read by node");
  not_served(
      DECODER("%attention_mask: i64[BxT]", LENGTHS_OF_MASK "  %q = Neg(%h)\n", "%logits, %ok, %ov, %q"),
      "the width of attention_mask is read by node");
  not_served(DECODER("%n: i32[B], %m: i32[1]", "  %q = Neg(%m)\n", "%logits, %ok, %ov, %q"),
             "'m' is read by node");
  not_served(DECODER("%n: i32[B], %m: i32[1]", "  %q = Shape(%pk)\n", "%logits, %ok, %ov, %q"),
             "'pk' is read by node");
}

/* Keys and values to which `join` adds what is new. */
#define JOINED(past, inputs, join, outputs)                                                                  \
  "opset 24\nopset \"com.microsoft\" 1\ngraph g(%input_ids: i64[BxS], %pk: f32[" past "], %pv: f32[" past    \
  "]" inputs ") -> (%logits, " outputs                                                                       \
  ") {\n  const %t: f32[5x4] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}\n"                       \
  "  const %axis: i64[1] = {1}\n  const %rows: i64[1] = {2}\n  %x = Gather(%t, %input_ids)\n"                \
  "  %h = Unsqueeze(%x, %axis)\n" join "}\n"
#define MASK ", %attention_mask: i64[BxT]"
#define SEEN                                                                                                 \
  "  const %two: i64[2] = {1,2}\n  %wide = Unsqueeze(%attention_mask, %two)\n  %seen = Cast(%wide) {to=9}\n"
#define CONCAT(key, value)                                                                                   \
  "  %ok = Concat(%pk, %h) {axis=" key "}\n  %ov = Concat(%pv, %h) {axis=" value "}\n"
#define ATTEND SEEN "  %y = Attention(%h, %ok, %ov, %seen)\n  %logits = Squeeze(%y, %axis)\n"
#define SCATTER(how)                                                                                         \
  "  %ok = TensorScatter(%pk, %h, %at) {" how "}\n  %ov = TensorScatter(%pv, %h, %at) {" how "}\n"
#define LENGTHS_ARE ", %at: i64[B], %n: i64[B]"
#define COUNTED(how) "  %y = Attention(%h, %ok, %ov, _, _, _, %n) {" how "}\n  %logits = Squeeze(%y, %axis)\n"

static void joined_caches_are_told_what_is_missing(void **state) {
  (void)state;
  not_served(JOINED("Bx1xPx4", MASK, CONCAT("1", "1") SEEN "  %logits = Neg(%x)\n", "%ok, %ov"),
             "it has no cache as input and output");
  not_served(JOINED("Bx1xPx4", MASK, CONCAT("2", "-2") ATTEND, "%ok"), "input 'pv' is none of input_ids");
  not_served(JOINED("Bx1xPx4", MASK, CONCAT("2", "2") ATTEND "  %q = Neg(%pv)\n", "%ok, %ov, %q"),
             "'pv' is read by node");
  not_served(JOINED("BxHxPx4", MASK, CONCAT("2", "2") ATTEND, "%ok, %ov"), "with known heads and size");
  not_served(JOINED("Bx1x8x4", MASK, CONCAT("2", "2") ATTEND, "%ok, %ov"),
             "the model fixes the length of 'pk'");
  not_served(JOINED("Bx1xPx4", "",
                    CONCAT("2", "2") "  %y = Attention(%h, %ok, %ov)\n  %logits = Squeeze(%y, %axis)\n",
                    "%ok, %ov"),
             "no input 'attention_mask' that could tell");
  not_served(JOINED("Bx1xPx4", MASK ", %z: f32[B]", CONCAT("2", "2") ATTEND, "%ok, %ov"),
             "input 'z' is none of input_ids");
  not_served(JOINED("Bx1xPx4", MASK ", %k: f32[Bx1xPx4], %v: f32[Bx1xPx4], %n: i32[B], %m: i32[1]",
                    CONCAT("2", "2") ATTEND
                    "  %q, %gk, %gv = com.microsoft::GroupQueryAttention(%x, %x, %x, %k, %v, %n, %m) "
                    "{num_heads=1, kv_num_heads=1}\n",
                    "%ok, %ov, %gk, %gv"),
             "caches of several forms");
  not_served(JOINED("Bx1xPx4", MASK,
                    SEEN "  %y, %ok, %ov = Attention(%h, %h, %h, %seen, %pk, %pv)\n"
                         "  %logits = Squeeze(%y, %axis)\n",
                    "%ok"),
             "present_value of node");
}

static void scattered_caches_are_told_what_is_missing(void **state) {
  (void)state;
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE, SCATTER("mode=\"circular\"") COUNTED("is_causal=1"), "%ok, %ov"),
             "a cache that drops tokens");
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE, SCATTER("axis=1") COUNTED("is_causal=1"), "%ok, %ov"),
             "writes along dimension 1");
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE, SCATTER("axis=2") COUNTED("is_causal=0"), "%ok, %ov"),
             "sees tokens that come later");
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE, SCATTER("axis=2") COUNTED("is_causal=1") "  %q = Neg(%ok)\n",
                    "%ok, %ov, %q"),
             "output 'ok' is read by node");
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE, SCATTER("axis=2") COUNTED("is_causal=1") "  %q = Shape(%pk)\n",
                    "%ok, %ov, %q"),
             "'pk' is read by node");
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE,
                    "  %a = Abs(%at)\n  %ok = TensorScatter(%pk, %h, %a)\n"
                    "  %ov = TensorScatter(%pv, %h, %a)\n" COUNTED("is_causal=1"),
                    "%ok, %ov"),
             "write_indices of node");
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE,
                    SCATTER("axis=2") "  %y = Attention(%h, %ok, %ov) {is_causal=1}\n"
                                      "  %logits = Squeeze(%y, %axis)\n",
                    "%ok, %ov"),
             "nonpad_kv_seqlen of node");
#define HANDED_ON(outputs)                                                                                   \
  SCATTER("axis=2")                                                                                          \
  "  %y" outputs " = Attention(%h, %ok, %ov, _, _, _, %n) {is_causal=1}\n  %logits = Squeeze(%y, %axis)\n"
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE, HANDED_ON(", %q, %r"), "%ok, %ov, %q"),
             "gives keys and values that are read");
  not_served(JOINED("Bx1xPx4", LENGTHS_ARE, HANDED_ON(", %q, %r") "  %z = Neg(%r)\n", "%ok, %ov, %z"),
             "gives keys and values that are read");
}

static void pages_are_the_callers(void **state) {
  (void)state;
  not_served(
      "opset 17\nopset \"com.microsoft\" 1\ngraph g(%input_ids: i64[T], %pk: f32[Px16x1x8], %pv: "
      "f32[Px16x1x8], %ends: i32[2], %past: i32[1], %table: i32[1xM]) -> (%logits, %ok, %ov) {\n"
      "  const %t: f32[2x8] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}\n  %x = Gather(%t, %input_ids)\n"
      "  %logits, %ok, %ov = com.microsoft::PagedAttention(%x, %x, %x, %pk, %pv, %ends, %past, %table) "
      "{num_heads=1, kv_num_heads=1}\n}\n",
      "'input_ids' is not of integers [batch, tokens]");
  not_served(
      "opset 17\nopset \"com.microsoft\" 1\ngraph g(%input_ids: i64[1xT], %pk: f32[Px16x1x8], %pv: "
      "f32[Px16x1x8], %ends: i32[2], %past: i32[1], %table: i32[1xM]) -> (%logits, %ok, %ov) {\n"
      "  const %t: f32[2x8] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}\n  const %s: i64[2] = {-1,8}\n"
      "  %e = Gather(%t, %input_ids)\n  %x = Reshape(%e, %s)\n"
      "  %logits, %ok, %ov = com.microsoft::PagedAttention(%x, %x, %x, %pk, %pv, %ends, %past, %table) "
      "{num_heads=1, kv_num_heads=1}\n}\n",
      "caches in pages, which the caller hands out");
}

/* What the mask and the positions do not say, though nothing but numbers shows it. */
static void holes_that_are_seen_are_refused(void **state) {
  (void)state;
  static const decoder_way ways[] = {DECODER_PLACES_OF_WIDTH, DECODER_NO_MASK, DECODER_SLOPES_OF_WIDTH,
                                     DECODER_WINDOW_OF_WIDTH};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    for (int halves = 0; halves < 2; halves++) {
      decoder_size z = small;
      z.form = DECODER_CONCAT, z.way = ways[i], z.halves = halves, z.positions = LONGEST;
      /* A device's cache may be some rows longer: then there are no such places. */
      does_not_generate(decoder_build(&z), device && !i ? "outside of what there is" : "with a hole between");
    }
#ifdef HN_FAULTS
  decoder_size z = small;
  z.form = DECODER_CONCAT;
  hn_fault_set("generate_empty_hole_is_seen");
  does_not_generate(decoder_build(&z), "between 0 tokens and new ones");
  hn_fault_set("generate_written_in_front"); /* on a device */
  if (device) does_not_generate(decoder_build(&z), "with a hole between");
  hn_fault_set(NULL);
#endif
}

/* As long as the window is not less than all that there can be. */
static void a_window_may_be_wide_enough(void **state) {
  (void)state;
  decoder_size z = small;
  int64_t got[MOST], want[MOST];
  z.form = DECODER_CONCAT, z.way = DECODER_WINDOW_OF_WIDTH;
  prompts = (prompt_sizes){3, 2, DECODER_WINDOW};
  hone_server *s = serve(&z, NULL, (hone_served_options){.context = DECODER_WINDOW});
  for (uint32_t k = 0; k < 3; k++) {
    hone_server_response r = open_stream(s, k, 8);
    assert_int_equal(r.status, 200);
    assert_int_equal(read_all(&r, got), 8);
    alone(&z, k, 8, want);
    assert_memory_equal(got, want, 8 * sizeof *got);
  }
  hone_server_destroy(s);
  prompts = (prompt_sizes){1, 40, CONTEXT};
}

/* A decoder that cannot generate still runs. */
static void what_cannot_generate_runs(void **state) {
  (void)state;
#define SHAPED(ids, cache, n, out)                                                                           \
  "opset 17\nopset \"com.microsoft\" 1\ngraph g(%input_ids: i64[" ids "], %pk: f32[" cache                   \
  "], %pv: f32[" cache "], %n: i32[" n "], %m: i32[1]) -> (%" out                                            \
  ", %ok, %ov) {\n  const %t: f32[5x4] = {1,2,3,4,5,6,7,8,9,10,11,12,13,"                                    \
  "14,15,16,17,18,19,20}\n  const %flat: i64[2] = {-1,4}\n  %x = Gather(%t, %input_ids)\n"                   \
  "  %y, %ok, %ov = com.microsoft::GroupQueryAttention(%x, %x, %x, %pk, %pv, %n, %m) "                       \
  "{num_heads=1, kv_num_heads=1}\n  %logits = Reshape(%y, %flat)\n}\n"
  not_served(SHAPED("2xS", "2x1xPx4", "2", "y"), "the model fixes its batch at 2");
  not_served(SHAPED("Bx4", "Bx1xPx4", "B", "y"), "the model fixes the tokens of a run at 4");
  not_served(SHAPED("BxS", "Bx1x0x4", "B", "y"), "sequences are of 0 tokens");
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  static const struct {
    hone_served_options o;
    const char *text;
  } wrong[] = {{{.context = 129}, "takes no sequences of 129 tokens"},
               {{.context = 1}, "no room for an answer"},
               {{.cache_bytes = 1000}, "no room for one sequence"}};
  hone_server *s = NULL;
  hone_model *m = decoder_build(&small);
  assert_int_equal(hone_server_create(engine, NULL, &s, NULL), HONE_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    hone_served_options o = wrong[i].o;
    hone_error e = {0};
    o.name = "net";
    assert_int_equal(hone_server_add(s, m, &o, &e), HONE_ERROR_USAGE);
    if (!strstr(e.what, wrong[i].text)) fail_msg("%s", e.what);
    assert_non_null(strstr(e.hint, "--no-generate"));
  }
  /* A budget is for fewer sequences; without one there are as many positions as the table has. */
  hone_served info;
  hone_served_options o = {.name = "some", .cache_bytes = 3 * 2 * 2 * 2 * 128 * 8 * 4};
  assert_int_equal(hone_server_add(s, m, &o, NULL), HONE_OK);
  assert_true(hone_server_model(s, 0, &info));
  assert_int_equal(info.sequences, 3);
  assert_int_equal(info.context, 128);
  /* Its runs, for who wants them. */
  o = (hone_served_options){.name = "runs", .runs = true};
  assert_int_equal(hone_server_add(s, m, &o, NULL), HONE_OK);
  wants(s, "/v2/models/runs/generate", "{\"input_ids\":[1]}", 400, "it is served for runs");
  hone_model_release(m);
  hone_server_destroy(s);
}

int main(int argc, char **argv) {
  if (argc > 1) device = argv[1];
  if (argc > 2) cmocka_set_test_filter(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(other_models_are_told_what_is_missing),
      cmocka_unit_test(joined_caches_are_told_what_is_missing),
      cmocka_unit_test(scattered_caches_are_told_what_is_missing),
      cmocka_unit_test(pages_are_the_callers),
      cmocka_unit_test(holes_that_are_seen_are_refused),
      cmocka_unit_test(a_window_may_be_wide_enough),
      cmocka_unit_test(what_cannot_generate_runs),
      cmocka_unit_test(what_cannot_be_is_refused),
  };
  return cmocka_run_group_tests(tests, start, end);
}
