/* A device that fails while sequences are generated: each is told one error, or goes on as if nothing had
 * been; others do, the server stays, and nothing is left behind. On the emulated GPU, whose driver fails on
 * purpose (tests/cuda/fake_fail.h). */
#include "generate_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/objects.h"
#include "api/serve/serve.h"
#include "api/serve/slots.h"

#include <hone/device_memory.h>
#include <hone/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fails(const char *what) { assert_int_equal(setenv("HONE_FAKE_FAIL", what ? what : "", 1), 0); }

/* Bytes that anybody holds of the device's memory, and of the host's that it reaches. */
static uint64_t held(void) {
  hone_memory_stats m;
  uint64_t all = 0;
  void *some = NULL; /* whoever copies first makes the device a queue, which it keeps */
  assert_int_equal(hone_memory_alloc(engine, HONE_MEMORY_DEVICE, 8, &some, NULL), HONE_OK);
  assert_int_equal(hone_memory_copy(engine, some, &all, 8, NULL), HONE_OK);
  hone_memory_free(engine, some);
  assert_int_equal(hone_engine_memory(engine, &m, NULL), HONE_OK);
  for (uint32_t i = 0; i < m.n_pools; i++) all += m.pool[i].used;
  hone_memory_stats_free(&m);
  return all;
}

/* All events of a stream; how many of these are errors. */
static uint32_t errors_of(hone_server_response *r, char *text, size_t room) {
  size_t n = 0;
  uint32_t errors = 0;
  for (size_t got; (got = hone_server_stream_read(r->stream, text + n, room - 1 - n)) > 0;) n += got;
  text[n] = 0;
  for (const char *at = text; (at = strstr(at, "{\"error\":")); at++) errors++;
  hone_server_response_free(r);
  return errors;
}

static bool right(const decoder_size *z, const char *text, uint32_t k, uint32_t most) {
  int64_t got[256], want[MOST];
  uint32_t n = 0;
  for (const char *at = text; (at = strstr(at, "data: ")); at++) n += ids_of(at, got + n);
  alone(z, k, most, want);
  return n == most && memcmp(got, want, most * sizeof *want) == 0;
}

/* Some memory of the device is not to be had when a server begins, whichever it is. */
static void memory_may_lack_at_the_beginning(void **state) {
  (void)state;
  uint32_t refused = 0;
  for (uint32_t at = 1;; at += 1 + at / 3) {
    char what[64];
    hone_server *s = NULL;
    hone_error e = {0};
    end(NULL);
    assert_int_equal(start(NULL), 0);
    const uint64_t before = held();
    hone_model *m = decoder_build(&small);
    assert_int_equal(hone_server_create(engine, NULL, &s, NULL), HONE_OK);
    snprintf(what, sizeof what, "cuMemAlloc_v2:%u+", at);
    fails(what);
    const hone_served_options o = {.name = "net", .context = CONTEXT, .sequences = 2};
    const hone_status status = hone_server_add(s, m, &o, &e);
    fails(NULL);
    if (status != HONE_OK) {
      assert_int_equal(status, HONE_ERROR_MEMORY);
      assert_true(e.what[0] != 0);
      refused++;
      if (hone_server_add(s, m, &o, &e) != HONE_OK)
        fail_msg("%u: %s: %s", at, e.where, e.what); /* as if nothing had been */
    }
    asked a = {.server = s, .k = 1, .most = 3};
    ask(&a);
    assert_int_equal(a.status, 200);
    hone_server_destroy(s);
    hone_model_release(m);
    assert_int_equal(held(), before);
    if (status == HONE_OK) break;
  }
  assert_true(refused > 2);
}

/* Two streams at their tokens, and then the driver fails so; how many end with an error. */
static uint32_t with_two(const decoder_size *z, const char *what, uint32_t *wrong) {
  static char text[2][1 << 16];
  hone_server *s = serve(z, NULL, (hone_served_options){.sequences = 2});
  struct hn_generator *g = s->model[0]->generator;
  hone_server_response r[2];
  uint32_t errors = 0;
  hn_generator_rounds(g, 0);
  for (uint32_t k = 0; k < 2; k++) r[k] = open_stream(s, k, 8);
  hn_generator_rounds(g, 3);
  fails(what);
  hn_generator_rounds(g, 2);
  fails(NULL);
  hn_generator_rounds(g, UINT64_MAX);
  *wrong = 0;
  for (uint32_t k = 0; k < 2; k++) {
    const uint32_t mine = errors_of(&r[k], text[k], sizeof text[k]);
    assert_true(mine <= 1);
    errors += mine;
    *wrong += mine ? !strstr(text[k], "cuda:0") : !right(z, text[k], k, 8);
  }
  assert_true(metric(s, "hone_sequences_live{") == 0);
  asked after = {.server = s, .k = 2, .most = 4};
  ask(&after);
  int64_t got[256], want[MOST];
  if (after.status != 200 || ids_of(after.text, got) != 4) fail_msg("%d %s", after.status, after.text);
  alone(z, 2, 4, want);
  assert_memory_equal(got, want, 4 * sizeof *want);
  hone_server_destroy(s);
  return errors;
}

static void a_run_may_fail_in_the_middle(void **state) {
  (void)state;
  uint32_t wrong;
  const uint64_t before = held();
  decoder_size z = small;
  for (int form = 0; form < 2; form++) {
    z.form = form ? DECODER_CONCAT : DECODER_GROUPED;
    /* What both have together: each by itself goes on. */
    assert_int_equal(with_two(&z, "cuGraphLaunch:1:2", &wrong), 0);
    assert_int_equal(wrong, 0);
    /* The first by itself, too. */
    assert_int_equal(with_two(&z, "cuGraphLaunch:1:2,cuGraphLaunch:2:2", &wrong), 1);
    assert_int_equal(wrong, 0);
  }
  assert_int_equal(with_two(&small, "cuGraphLaunch:1+:2", &wrong), 2);
  assert_int_equal(wrong, 0);
  assert_int_equal(held(), before);
}

static size_t slot_bytes(const hn_slots *s, const hn_cache *c) { return (size_t)c->heads * s->room * c->row; }

/* Bytes other than zeros behind what the sequence in slot 0 has. */
static size_t behind(const hn_slots *s) {
  size_t n = 0;
  assert_non_null(s->at[0]);
  for (uint32_t i = 0; i < s->n_caches; i++) {
    const hn_cache *c = &s->cache[i];
    char *here = malloc(slot_bytes(s, c));
    assert_int_equal(hone_memory_copy(s->engine, here, c->data, slot_bytes(s, c), NULL), HONE_OK);
    for (size_t k = 0, head = s->room * c->row; k < (size_t)c->heads * head; k++)
      n += k % head >= s->at[0]->fed * c->row && here[k] != 0;
    free(here);
  }
  return n;
}

/* A run that is refused when it has ended has written what it has: the next in its place finds nothing. */
static void what_a_failed_run_wrote_is_cleared(void **state) {
  (void)state;
  static char text[1 << 16];
  decoder_size z = small;
  z.form = DECODER_CONCAT;
  hone_server *s = serve(&z, NULL, (hone_served_options){.sequences = 1});
  struct hn_generator *g = s->model[0]->generator;
  hn_slots *slots = (hn_slots *)(uintptr_t)hn_generator_slots(g);
  slots->vocabulary++; /* the server lets an id pass that the model does not know */
  wants(s, "/v2/models/net/generate", "{\"input_ids\":[1,2,3,4,5,6,7,61]}", 400, "outside of what there is");
  slots->vocabulary--;
  hn_generator_rounds(g, 0);
  hone_server_response r = open_stream(s, 0, 8);
  hn_generator_rounds(g, 2);
  assert_int_equal(behind(slots), 0);
  /* Behind who lives, too. */
  const hn_cache *c = &slots->cache[0];
  const uint32_t rubbish = 1;
  char *last = c->data + slot_bytes(slots, c) - sizeof rubbish;
  assert_int_equal(hone_memory_copy(slots->engine, last, &rubbish, sizeof rubbish, NULL), HONE_OK);
  assert_true(behind(slots) > 0);
  hn_caches_doubt(slots, &(hn_part){slots->at[0], 1}, 1);
  hn_generator_rounds(g, 1);
  assert_int_equal(behind(slots), 0);
  hn_generator_rounds(g, UINT64_MAX);
  assert_int_equal(errors_of(&r, text, sizeof text), 0);
  assert_true(right(&z, text, 0, 8));
  hone_server_destroy(s);
}

/* A slot goes as it is, with what is not cleared yet. */
static void a_slot_that_moves_may_have_to_be_cleared(void **state) {
  (void)state;
  decoder_size z = small;
  z.form = DECODER_CONCAT;
  hone_server *s = serve(&z, NULL, (hone_served_options){.sequences = 2});
  hn_slots *slots = (hn_slots *)(uintptr_t)hn_generator_slots(s->model[0]->generator);
  slots->written[0] = slots->room, slots->written[1] = 0;
  assert_int_equal(hn_caches_move(slots, 0, 1, 1, NULL), HONE_OK);
  assert_int_equal(slots->written[1], slots->room);
  slots->written[0] = 1;
  assert_int_equal(hn_caches_move(slots, 0, 1, 1, NULL), HONE_OK);
  assert_int_equal(slots->written[1], 1);
  hone_server_destroy(s);
}

static hone_server *watched;
static const hn_backend *watched_backend;
static uint32_t waits, locked;

static hone_status watched_sync(hn_device *d, hn_queue *q, hone_error *error) {
  const bool open = pthread_mutex_trylock(&watched->lock) == 0;
  if (open) pthread_mutex_unlock(&watched->lock);
  waits++, locked += !open;
  return watched_backend->sync(d, q, error);
}

/* Requests find their models while the server asks a device how it is. */
static void whether_it_is_ready_is_asked_without_the_lock(void **state) {
  (void)state;
  watched = serve(&small, NULL, (hone_served_options){.sequences = 2});
  hone_engine *e = watched->model[0]->replica[0].engine;
  watched_backend = e->backend;
  hn_backend other = *watched_backend;
  other.sync = watched_sync;
  e->backend = &other;
  const hone_server_request r = {.method = "GET", .path = "/v2/health/ready"};
  hone_server_response out;
  hone_server_answer(watched, &r, &out);
  e->backend = watched_backend;
  assert_int_equal(out.status, 200);
  assert_int_equal(waits, 1);
  assert_int_equal(locked, 0);
  hone_server_response_free(&out);
  hone_server_destroy(watched);
}

/* Where a sequence stands its work has to be captured first: there is no memory for that. */
static void memory_may_lack_as_a_sequence_begins(void **state) {
  (void)state;
  static char text[1 << 16];
  const uint64_t before = held();
  decoder_size z = small;
  z.single = true;
  hone_server *s = serve(&z, NULL, (hone_served_options){.sequences = 2});
  struct hn_generator *g = s->model[0]->generator;
  hn_generator_rounds(g, 0);
  hone_server_response first = open_stream(s, 0, 12);
  hn_generator_rounds(g, 3);
  hone_server_response second = open_stream(s, 1, 8);
  fails("cuGraphInstantiateWithFlags:1+:2");
  hn_generator_rounds(g, 1);
  fails(NULL);
  hn_generator_rounds(g, UINT64_MAX);
  assert_int_equal(errors_of(&second, text, sizeof text), 1);
  assert_non_null(strstr(text, "out of memory"));
  assert_int_equal(errors_of(&first, text, sizeof text), 0);
  assert_true(right(&z, text, 0, 12));
  asked after = {.server = s, .k = 1, .most = 8};
  ask(&after);
  assert_int_equal(after.status, 200);
  hone_server_destroy(s);
  assert_int_equal(held(), before);
}

/* A fault of a kernel: nothing more runs on this device, and all are told so. Last: the device is lost. */
static void a_lost_device_is_told(void **state) {
  (void)state;
  static char text[1 << 16];
  hone_server *s = serve(&small, NULL, (hone_served_options){.sequences = 2});
  struct hn_generator *g = s->model[0]->generator;
  const hone_server_request before = {.method = "GET", .path = "/v2/health/ready"};
  hone_server_response out;
  hone_server_answer(s, &before, &out);
  assert_int_equal(out.status, 200);
  hone_server_response_free(&out);
  hn_generator_rounds(g, 0);
  hone_server_response r = open_stream(s, 0, 12);
  hn_generator_rounds(g, 3);
  fails("kernel:5:700");
  hn_generator_rounds(g, UINT64_MAX);
  assert_int_equal(errors_of(&r, text, sizeof text), 1);
  fails(NULL);
  asked after = {.server = s, .k = 1, .most = 8};
  ask(&after);
  if (after.status != 500) fail_msg("%d %s", after.status, after.text);
  assert_non_null(strstr(after.text, "\"error\":"));
  assert_non_null(strstr(after.text, "nothing more runs on it"));
  static const struct {
    const char *path;
    int status;
  } asks[] = {{"/v2/health/live", 200}, {"/v2/health/ready", 503}, {"/v2/models/net/ready", 503}};
  for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
    const hone_server_request health = {.method = "GET", .path = asks[i].path};
    hone_server_answer(s, &health, &out);
    assert_int_equal(out.status, asks[i].status);
    hone_server_response_free(&out);
  }
  hone_server_destroy(s);
}

int main(void) {
  device = "cuda";
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_may_lack_at_the_beginning),
      cmocka_unit_test(a_run_may_fail_in_the_middle),
      cmocka_unit_test(what_a_failed_run_wrote_is_cleared),
      cmocka_unit_test(a_slot_that_moves_may_have_to_be_cleared),
      cmocka_unit_test(whether_it_is_ready_is_asked_without_the_lock),
      cmocka_unit_test(memory_may_lack_as_a_sequence_begins),
      cmocka_unit_test(a_lost_device_is_told),
  };
  return cmocka_run_group_tests(tests, start, end);
}
