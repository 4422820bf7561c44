/* Requests for generation: what a seed draws, ends, events, a full cache, who hangs up, requests that are
 * wrong, and a server that is stopped. */
#include "generate_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/serve/generate.h"
#include "base/mem.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a seed draws does not depend on who else runs. */
static void seeds_decide(void **state) {
  (void)state;
  hone_server *s = serve(&small, NULL, (hone_served_options){0});
  static const char *const how[] = {"\"temperature\":0.8,\"seed\":1", "\"temperature\":0.8,\"seed\":2",
                                    "\"temperature\":1.5,\"top_k\":9,\"seed\":3",
                                    "\"temperature\":1.5,\"top_p\":0.7,\"seed\":4",
                                    "\"temperature\":1.5,\"top_k\":30,\"top_p\":0.9,\"seed\":5"};
  enum { HOWS = sizeof how / sizeof *how };
  asked one[HOWS], all[HOWS];
  for (uint32_t i = 0; i < HOWS; i++) {
    one[i] = all[i] = (asked){.server = s, .k = 3, .most = 40, .more = how[i]};
    ask_all(&one[i], 1);
    assert_int_equal(one[i].status, 200);
    for (uint32_t k = 0; k < i; k++) assert_string_not_equal(one[i].text, one[k].text);
  }
  ask_all(all, HOWS);
  for (uint32_t i = 0; i < HOWS; i++) assert_string_equal(all[i].text, one[i].text);
  /* The most probable alone. */
  asked greedy = {.server = s, .k = 3, .most = 40}, first = greedy, narrow = greedy;
  first.more = "\"temperature\":5,\"top_k\":1", narrow.more = "\"temperature\":1,\"top_p\":0";
  ask_all(&greedy, 1);
  ask_all(&first, 1);
  ask_all(&narrow, 1);
  assert_string_equal(first.text, greedy.text);
  assert_string_equal(narrow.text, greedy.text);
  hone_server_destroy(s);
}

static void numbers_are_drawn_as_often_as_probable(void **state) {
  (void)state;
  enum { N = 400, DRAWS = 40000 };
  static float logits[N];
  static hn_candidate room[N];
  static uint32_t count[N];
  for (int i = 0; i < N; i++) logits[i] = i % 40 ? -2.0f : 1.0f + (float)(i / 40) / 4; /* ten likely ones */
  logits[1] = NAN, logits[2] = -INFINITY;
  for (int mode = 0; mode < 4; mode++) {
    const hn_sampling how = {.temperature = mode == 3 ? 0.5f : 1.0f,
                             .top_p = mode == 1 ? 0.5f : 1.0f,
                             .top_k = mode == 2 ? 3 : 0,
                             .seed = 11};
    double p[N], all = 0;
    memset(count, 0, sizeof count);
    for (int i = 0; i < N; i++) {
      p[i] = isfinite(logits[i]) ? exp((double)logits[i] / (double)how.temperature) : 0;
      all += p[i];
    }
    if (mode == 1) { /* the largest of the ten until half of all is theirs */
      double sum = 0;
      for (int i = N - 40; i >= 0; i -= 40) {
        if (sum >= 0.5 * all) p[i] = 0;
        sum += p[i];
      }
      if (sum >= 0.5 * all)
        for (int i = 0; i < N; i++) p[i] = i % 40 ? 0 : p[i];
    }
    if (mode == 2)
      for (int i = 0; i < N; i++) p[i] = i >= 280 && i % 40 == 0 ? p[i] : 0;
    all = 0;
    for (int i = 0; i < N; i++) all += p[i];
    for (uint32_t k = 0; k < DRAWS; k++) count[hn_sample(logits, N, &how, k, room)]++;
    for (int i = 0; i < N; i++) { /* six standard deviations */
      const double want = DRAWS * p[i] / all;
      if (fabs(count[i] - want) > 6 * sqrt(want + 0.25))
        fail_msg("mode %d: %d is drawn %u times, not %g", mode, i, count[i], want);
    }
  }
  for (int i = 0; i < N; i++) logits[i] = NAN;
  assert_int_equal(hn_sample(logits, N, &(hn_sampling){.top_p = 1}, 0, room), -1);
  assert_int_equal(hn_sample(logits, N, &(hn_sampling){.temperature = 1, .top_p = 1}, 0, room), -1);
}

static void an_end_ends_it(void **state) {
  (void)state;
  int64_t want[MOST], got[MOST];
  char more[64];
  alone(&small, 2, 30, want);
  uint32_t at = 5; /* the first time that it comes */
  for (uint32_t i = 0; i < at; i++)
    if (want[i] == want[at]) at = i;
  hone_server *s = serve(&small, NULL, (hone_served_options){0});
  snprintf(more, sizeof more, "\"end_ids\":[%d,%d]", VOCABULARY - 1 == (int)want[at] ? 0 : VOCABULARY - 1,
           (int)want[at]);
  asked a = {.server = s, .k = 2, .most = 30, .more = more};
  ask(&a);
  assert_int_equal(a.status, 200);
  const uint32_t n = ids_of(a.text, got);
  assert_true(n >= 1 && n <= at + 1);
  assert_memory_equal(got, want, n * sizeof *got);
  assert_non_null(strstr(a.text, "\"finish_reason\":\"stop\""));
  assert_true(metric(s, "hone_sequences_total{model=\"net\",version=\"1\",reason=\"stop\"") == 1);
  hone_server_destroy(s);
}

static void events_are_the_answer(void **state) {
  (void)state;
  hone_server *s = serve(&small, NULL, (hone_served_options){0});
  int64_t want[MOST], id;
  char text[16384] = "";
  size_t n = 0;
  alone(&small, 4, 25, want);
  hone_server_response r = open_stream(s, 4, 25);
  assert_int_equal(r.status, 200);
  assert_string_equal(r.content_type, "text/event-stream");
  assert_null(r.body);
  for (size_t got; (got = hone_server_stream_read(r.stream, text + n, 7)) > 0; n += got)
    assert_true(n + 8 < sizeof text);
  text[n] = 0;
  hone_server_response_free(&r);
  const char *at = text;
  for (uint32_t i = 0; i < 25; i++) {
    assert_int_equal(strncmp(at, "data: {\"model_name\":\"net\"", 24), 0);
    assert_int_equal(ids_of(at, &id), 1);
    assert_int_equal(id, want[i]);
    const char *stop = strstr(at, "\n\n"), *finish = strstr(at, "finish_reason");
    assert_non_null(stop);
    assert_true(i < 24 ? !finish || finish > stop : finish && finish < stop);
    at = stop + 2;
  }
  assert_string_equal(at, "");
  /* The same for who takes no parts. */
  char body[4096];
  const asked a = {.k = 4, .most = 25};
  body_of(&a, body, sizeof body);
  const hone_server_request whole = {
      .method = "POST", .path = "/v2/models/net/generate_stream", .body = body, .size = strlen(body)};
  hone_server_answer(s, &whole, &r);
  assert_int_equal(r.status, 200);
  assert_string_equal(r.body, text);
  hone_server_response_free(&r);
  hone_server_destroy(s);
}

/* However many tokens wait for their reader, one event is held; what a stream holds counts. */
static void streams_hold_little(void **state) {
  (void)state;
  const hone_server_options o = {.max_body = 1024, .max_bodies = 1 << 14};
  hone_server *s = serve(&small, &o, (hone_served_options){.sequences = 2});
  hone_server_response r[64];
  char text[65536];
  uint32_t n = 0;
  size_t got;
  r[0] = open_stream(s, 0, 60);
  hn_generator_rounds(s->model[0]->generator, 70);
  for (; (got = hone_server_stream_read(r[0].stream, text, sizeof text - 1)) > 0; n++) {
    text[got] = 0;
    assert_true(strstr(text, "\n\n") == text + got - 2);
  }
  assert_int_equal(n, 60);
  hone_server_response_free(&r[0]);
  assert_int_equal(atomic_load(&s->body_bytes), 0);
  hn_generator_rounds(s->model[0]->generator, 0);
  for (n = 0; n < 64 && (r[n] = open_stream(s, n, 40)).status == 200;) n++;
  assert_true(n > 1 && n < 64);
  assert_int_equal(r[n].status, 503);
  assert_non_null(strstr(r[n].body, "no room for more requests"));
  hone_server_response_free(&r[n]);
  for (uint32_t i = 0; i < n; i++) hone_server_response_free(&r[i]);
  assert_int_equal(atomic_load(&s->body_bytes), 0);
  hn_generator_rounds(s->model[0]->generator, UINT64_MAX);
  r[0] = open_stream(s, 0, 40);
  assert_int_equal(r[0].status, 200);
  hone_server_response_free(&r[0]);
  hone_server_destroy(s);
}

/* No memory for an event: the stream says so and is over, whatever the sequence is at. */
static void memory_may_end_in_a_stream(void **state) {
  (void)state;
  hone_server *s = serve(&small, NULL, (hone_served_options){0});
  char text[4096];
  hn_generator_rounds(s->model[0]->generator, 0);
  hone_server_response r = open_stream(s, 0, 60);
  hn_generator_rounds(s->model[0]->generator, 5);
  hn_mem_fail_after(1);
  const size_t n = hone_server_stream_read(r.stream, text, sizeof text - 1);
  assert_true(hn_mem_failed());
  hn_mem_fail_after(0);
  text[n] = 0;
  assert_string_equal(text, "data: {\"error\":\"out of memory\"}\n\n");
  assert_int_equal(hone_server_stream_read(r.stream, text, sizeof text), 0);
  hn_generator_rounds(s->model[0]->generator, UINT64_MAX);
  hone_server_response_free(&r);
  assert_true(metric(s, "hone_requests_total{model=\"net\",version=\"1\",code=\"5xx\"") == 1);
  hone_server_destroy(s);
}

static void a_full_cache_lets_wait(void **state) {
  (void)state;
  const hone_server_options few = {.max_waiting = 1};
  hone_server *s = serve(&small, &few, (hone_served_options){.sequences = 1});
  int64_t ids[MOST], want[MOST];
  hn_generator_rounds(s->model[0]->generator, 0);
  hone_server_response first = open_stream(s, 0, 60);
  hn_generator_rounds(s->model[0]->generator, 2);
  hone_server_response second = open_stream(s, 1, 30), third = open_stream(s, 2, 5);
  assert_int_equal(third.status, 503);
  assert_non_null(strstr(third.body, "1 requests for 'net' wait already"));
  assert_null(third.stream);
  hone_server_response_free(&third);
  assert_true(metric(s, "hone_cache_blocks_used{") == 1);
  assert_true(metric(s, "hone_cache_blocks{") == 1);
  assert_true(metric(s, "hone_requests_waiting{") == 1);
  hn_generator_rounds(s->model[0]->generator, UINT64_MAX);
  alone(&small, 0, 60, want);
  assert_int_equal(read_all(&first, ids), 60);
  assert_memory_equal(ids, want, 60 * sizeof *ids);
  alone(&small, 1, 30, want);
  assert_int_equal(read_all(&second, ids), 30);
  assert_memory_equal(ids, want, 30 * sizeof *ids);
  hone_server_destroy(s);
}

static bool never_there(void *arg) {
  *(int *)arg += 1;
  return true;
}

static void who_is_gone_leaves_room(void **state) {
  (void)state;
  hone_server *s = serve(&small, NULL, (hone_served_options){.sequences = 2, .context = 128});
  char body[4096];
  int looked = 0;
  for (uint32_t i = 0; i < 6; i++) {
    hone_server_response r = open_stream(s, i, 80);
    assert_int_equal(r.status, 200);
    assert_true(i % 2 || hone_server_stream_read(r.stream, body, 1) == 1);
    hone_server_response_free(&r);
  }
  const asked a = {.k = 1, .most = 80};
  body_of(&a, body, sizeof body);
  const hone_server_request gone = {"POST",       "/v2/models/net/generate", NULL,          body,
                                    strlen(body), .gone = never_there,       .arg = &looked};
  hone_server_response r;
  hn_generator_rounds(s->model[0]->generator, 0); /* there is no end but that nobody waits */
  hone_server_answer(s, &gone, &r);
  hn_generator_rounds(s->model[0]->generator, UINT64_MAX);
  assert_int_equal(r.status, 503);
  assert_true(looked > 0);
  hone_server_response_free(&r);
  assert_true(metric(s, "hone_sequences_live{") == 0);
  assert_true(metric(s, "hone_requests_waiting{") == 0);
  assert_true(metric(s, "hone_requests_total{model=\"net\",version=\"1\",code=\"5xx\"") == 0);
  assert_true(metric(s, "hone_requests_total{model=\"net\",version=\"1\",code=\"4xx\"") > 0);
  asked after = {.server = s, .k = 3, .most = 10};
  ask(&after);
  assert_int_equal(after.status, 200);
  hone_server_destroy(s);
}

static void a_stopped_server_lets_go(void **state) {
  (void)state;
  hone_server *s = serve(&small, NULL, (hone_served_options){.sequences = 2, .context = 128});
  hone_server_response r[5];
  char text[65536];
  for (uint32_t i = 0; i < 5; i++) r[i] = open_stream(s, i * 3, 80);
  assert_int_equal(hone_server_stream_read(r[0].stream, text, 1), 1);
  hone_server_stop(s);
  for (uint32_t i = 0; i < 5; i++) {
    size_t n = 0;
    for (size_t got; (got = hone_server_stream_read(r[i].stream, text + n, sizeof text - 1 - n)) > 0;)
      n += got;
    text[n] = 0;
    assert_true(strstr(text, "\"finish_reason\":\"cancelled\"") ||
                strstr(text, "\"finish_reason\":\"length\"") ||
                strstr(text, "{\"error\":\"the server is being stopped\"}"));
    hone_server_response_free(&r[i]);
  }
  asked late = {.server = s, .k = 0, .most = 3};
  ask(&late);
  assert_int_equal(late.status, 503);
  hone_server_destroy(s);
}

static void wrong_requests_are_told_what_is_wrong(void **state) {
  (void)state;
  static const struct {
    const char *body, *text;
  } wrong[] = {
      {"", "no JSON"},
      {"[1]", "no JSON object"},
      {"{\"input_ids\":[1}", "no JSON"},
      {"{}", "no 'input_ids'"},
      {"{\"input_ids\":[]}", "no 'input_ids'"},
      {"{\"input_ids\":7}", "no 'input_ids'"},
      {"{\"input_ids\":[1,61]}",
       "at element 1 what is no token of the model; expected integers from 0 to 60, got 61"},
      {"{\"input_ids\":[-1]}", "at element 0"},
      {"{\"input_ids\":[1.5]}", "at element 0"},
      {"{\"input_ids\":[[1]]}", "at element 0"},
      {"{\"input_ids\":[99999999999999999999999]}", "no JSON"},
      {"{\"input_ids\":[1],\"id\":5}", "'id' is no string"},
      {"{\"input_ids\":[1],\"parameters\":[]}", "'parameters' is no object"},
      {"{\"input_ids\":[1],\"parameters\":{\"max_tokens\":0}}", "'max_tokens' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"max_tokens\":96}}", "'max_tokens' is out of its range"},
      {"{\"input_ids\":[1,2],\"parameters\":{\"max_tokens\":95}}", "; expected 96 together, got 2 and 95"},
      {"{\"input_ids\":[1],\"parameters\":{\"max_tokens\":\"5\"}}", "'max_tokens' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"temperature\":-1}}", "'temperature' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"temperature\":1e300}}", "'temperature' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"top_p\":1.1}}", "'top_p' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"top_p\":true}}", "'top_p' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"top_k\":-1}}", "'top_k' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"seed\":0.5}}", "'seed' is out of its range"},
      {"{\"input_ids\":[1],\"parameters\":{\"end_ids\":3}}", "'end_ids' is no list"},
      {"{\"input_ids\":[1],\"parameters\":{\"end_ids\":[61]}}", "'end_ids' has at element 0"},
      {"{\"input_ids\":[1],\"parameters\":{\"beams\":3}}", "no parameter 'beams'"},
      {"{\"input_ids\":[1],\"max_tokens\":5}", "no member 'max_tokens'"},
      {"{\"input_ids\":[1],\"input_ids\":[1]}", "no JSON"}};
  hone_server *s = serve(&small, NULL, (hone_served_options){0});
  char longest[2048] = "{\"input_ids\":[0", named[512];
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    wants(s, "/v2/models/net/generate", wrong[i].body, 400, wrong[i].text);
    wants(s, "/v2/models/net/generate_stream", wrong[i].body, 400, wrong[i].text);
  }
  for (int i = 1; i < CONTEXT; i++) strcat(longest, ",1");
  strcat(longest, "]}");
  wants(s, "/v2/models/net/generate", longest, 400,
        "leaves no room for an answer; expected at most 95 tokens, got 96");
  const hone_server_request bytes = {.method = "POST",
                                     .path = "/v2/models/net/generate",
                                     .json_size = "2",
                                     .body = "{}",
                                     .size = 2},
                            get = {.method = "GET", .path = "/v2/models/net/generate"};
  hone_server_response r;
  hone_server_answer(s, &bytes, &r);
  assert_int_equal(r.status, 400);
  hone_server_response_free(&r);
  hone_server_answer(s, &get, &r);
  assert_int_equal(r.status, 405);
  hone_server_response_free(&r);
  wants(s, "/v2/models/net/infer", "{\"inputs\":[]}", 400, "served for generation, not for runs");
  wants(s, "/v2/models/net/generate", "{\"id\":\"a\\\"b\",\"input_ids\":[1]}", 200, "\"id\":\"a\\\"b\"");
  for (int i = HN_MOST_ID; i <= HN_MOST_ID + 1; i++) {
    snprintf(named, sizeof named, "{\"input_ids\":[1],\"id\":\"%0*d\"}", i, 7);
    wants(s, "/v2/models/net/generate_stream", named, i > HN_MOST_ID ? 400 : 200,
          i > HN_MOST_ID ? "'id' is too long; expected at most 256 bytes, got 257" : "\"id\":\"0000");
  }
  hone_served m;
  assert_true(hone_server_model(s, 0, &m));
  assert_int_equal(m.sequences, SEQUENCES);
  assert_int_equal(m.context, CONTEXT);
  assert_int_equal(m.max_batch, SEQUENCES);
  assert_int_equal(m.tokens, 32);
  assert_true(m.cache_bytes >= 4u * 2 * 2 * CONTEXT * 8 * 4 * SEQUENCES / 2);
  hone_server_destroy(s);
}

/* The answer is UTF-8 without control characters, whatever was asked. */
static void answers_well(hone_server *s, const char *body, size_t size, int status, const char *says) {
  const hone_server_request r = {
      .method = "POST", .path = "/v2/models/net/generate", .body = body, .size = size};
  hone_server_response out;
  hone_server_answer(s, &r, &out);
  if (out.status != status || !strstr(out.body, says)) fail_msg("%d %s, not %s", out.status, out.body, says);
  for (size_t i = 0; i < out.size;) {
    const size_t n = (unsigned char)out.body[i] < 0x80 ? 1 : hn_text_character(out.body + i);
    if (!n || (unsigned char)out.body[i] < 0x20) fail_msg("byte %zu of %s", i, out.body);
    i += n;
  }
  assert_true(out.size < 2048);
  hone_server_response_free(&out);
}

static void hostile_bodies_are_refused(void **state) {
  (void)state;
  enum { LARGE = 4 << 20 };
  hone_server *s = serve(&small, NULL, (hone_served_options){0});
  char *large = malloc(LARGE + 64), named[512] = "{\"input_ids\":[1],\"parameters\":{\"x";
  assert_non_null(large);
  for (int i = 0; i < 100; i++) strcat(named, "\xc3\xa9"); /* what is told of it ends within a character */
  strcat(named, "\":1}}");
  answers_well(s, named, strlen(named), 400, "there is no parameter 'x");
  answers_well(s, NULL, 0, 400, "no JSON");
#define ANSWERS(body, status, says) answers_well(s, body, sizeof body - 1, status, says)
  ANSWERS("{\"input_ids\":[1],\"id\":\"\xff\xfe\"}", 400, "no JSON");
  ANSWERS("{\"input_ids\":[1],\"id\":\"a\\u0000b\"}", 400, "no JSON");
  ANSWERS("{\"input_ids\":[1],\"id\":\"\\ud800\"}", 400, "no JSON");
  ANSWERS("{\"input_ids\":[1]}\0{}", 400, "no JSON");
  ANSWERS("{\"input_ids\":[1]} {}", 400, "no JSON");
  ANSWERS("\xef\xbb\xbf{\"input_ids\":[1]}", 400, "no JSON");
  ANSWERS("{\"input_ids\":[1],\"parameters\":{\"temperature\":1e999}}", 400, "no JSON");
  ANSWERS("{\"input_ids\":[1],\"parameters\":{\"temperature\":1e-320}}", 200, "output_ids");
  ANSWERS("{\"input_ids\":[1],\"parameters\":{\"max_tokens\":-9223372036854775808}}", 400, "'max_tokens'");
  ANSWERS("{\"input_ids\":[null]}", 400, "at element 0");
  ANSWERS("{\"input_ids\":[true]}", 400, "at element 0");
  ANSWERS("{\"input_ids\":[9223372036854775807]}", 400, "got 9223372036854775807");
  memset(large, '[', LARGE);
  answers_well(s, large, LARGE, 400, "JSON");
  size_t n = (size_t)sprintf(large, "{\"input_ids\":[1");
  for (; n < LARGE; n += 2) memcpy(large + n, ",1", 2);
  n += (size_t)sprintf(large + n, "]}");
  answers_well(s, large, n, 400, "(a sequence has at most 96 tokens)"); /* 140 MB, if it was read */
  /* What is no memory is nothing to refuse. */
  n = (size_t)sprintf(large, "{\"input_ids\":[1]");
  memset(large + n, ' ', LARGE - n);
  large[LARGE - 1] = '}';
  answers_well(s, large, LARGE, 200, "output_ids");
  free(large);
  hone_server_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(seeds_decide),
      cmocka_unit_test(numbers_are_drawn_as_often_as_probable),
      cmocka_unit_test(an_end_ends_it),
      cmocka_unit_test(events_are_the_answer),
      cmocka_unit_test(streams_hold_little),
      cmocka_unit_test(memory_may_end_in_a_stream),
      cmocka_unit_test(a_full_cache_lets_wait),
      cmocka_unit_test(who_is_gone_leaves_room),
      cmocka_unit_test(a_stopped_server_lets_go),
      cmocka_unit_test(wrong_requests_are_told_what_is_wrong),
      cmocka_unit_test(hostile_bodies_are_refused),
  };
  return cmocka_run_group_tests(tests, start, end);
}
