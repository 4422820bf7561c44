/* Registries: what is added, refused, found and removed, who holds what, and many readers at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct fruit {
  const char *family, *name;
  bool bad;
} fruit;

static const fruit lemon = {"citrus", "lemon", false}, plum = {"stone", "plum", false},
                   orange = {"citrus", "orange", false}, cherry = {"stone", "cherry", false},
                   lime = {"citrus", "lime", false}, lemon_again = {"citrus", "lemon", false},
                   rotten = {"stone", "peach", true};

static const char *key(const void *unit) { return ((const fruit *)unit)->family; }
static void label(const void *unit, char *buf, size_t size) {
  snprintf(buf, size, "%s", ((const fruit *)unit)->name);
}
static hone_status check(const void *unit, hone_error *error) {
  const fruit *f = unit;
  return f->bad ? hn_fail(error, HONE_ERROR_USAGE, "fruit %s is rotten", f->name) : HONE_OK;
}

static const void *const grown[] = {&lemon, &plum, &orange};
static const hn_kind kind = {.noun = "fruit", .key = key, .label = label, .check = check};
static hn_registry fruits = HN_REGISTRY(&kind, grown);

/* The names of a family, or of all (NULL). */
static const char *names(const hn_listing *l, const char *family) {
  static char text[2000];
  size_t at = 0;
  text[0] = 0;
  for (uint32_t i = family ? hn_listing_first(l, family)
                    : l->n ? 0
                           : HN_NO_UNIT;
       i != HN_NO_UNIT; i = family         ? l->next[i]
                            : i + 1 < l->n ? i + 1
                                           : HN_NO_UNIT)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s ", ((const fruit *)l->unit[i])->name);
  return text;
}

static void looked_up(void **state) {
  (void)state;
  const hn_listing *l = hn_registry_take(&fruits);
  assert_string_equal(names(l, NULL), "lemon plum orange ");
  assert_string_equal(names(l, "citrus"), "lemon orange ");
  assert_string_equal(names(l, "stone"), "plum ");
  assert_int_equal(hn_listing_first(l, "berries"), HN_NO_UNIT);
  assert_null(hn_listing_find(l, "berries"));
  assert_ptr_equal(hn_listing_find(l, "citrus"), &lemon);
  hn_listing_drop(l);
}

static void added_and_removed(void **state) {
  (void)state;
  hone_error e = {0};
  const hn_listing *before = hn_registry_take(&fruits);
  const void *more[] = {&cherry, &lime};
  assert_int_equal(hn_registry_add(&fruits, more, 2, &e), HONE_OK);
  const hn_listing *with = hn_registry_take(&fruits);
  assert_string_equal(names(before, NULL), "lemon plum orange ");
  assert_string_equal(names(with, NULL), "lemon plum orange cherry lime ");
  assert_string_equal(names(with, "citrus"), "lemon orange lime ");
  /* also one that was there from the beginning */
  const void *fewer[] = {&plum, &cherry};
  assert_int_equal(hn_registry_remove(&fruits, fewer, 2, &e), HONE_OK);
  const hn_listing *after = hn_registry_take(&fruits);
  assert_string_equal(names(after, NULL), "lemon orange lime ");
  assert_null(hn_listing_find(after, "stone"));
  assert_string_equal(names(with, "stone"), "plum cherry ");
  /* gone only when nobody can see it any more */
  assert_true(hn_registry_holds(&fruits, &cherry));
  const hn_listing *kept = hn_listing_keep(with);
  hn_listing_drop(with);
  assert_true(hn_registry_holds(&fruits, &cherry));
  hn_listing_drop(kept);
  assert_false(hn_registry_holds(&fruits, &cherry));
  assert_true(hn_registry_holds(&fruits, &plum));
  hn_listing_drop(before);
  assert_false(hn_registry_holds(&fruits, &plum));
  assert_true(hn_registry_holds(&fruits, &lime));
  hn_listing_drop(after);
  hn_registry_reset(&fruits);
  assert_false(hn_registry_holds(&fruits, &lime));
  looked_up(state);
}

static void refused(void **state) {
  (void)state;
  hone_error e = {0};
  const void *again[] = {&cherry, &lemon_again}, *twice[] = {&lime, &lime}, *bad[] = {&cherry, &rotten},
             *absent[] = {&lemon, &cherry};
  assert_int_equal(hn_registry_add(&fruits, again, 2, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "there is already fruit lemon");
  assert_int_equal(hn_registry_add(&fruits, twice, 2, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "there is already fruit lime");
  assert_int_equal(hn_registry_add(&fruits, bad, 2, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "fruit peach is rotten");
  assert_int_equal(hn_registry_remove(&fruits, absent, 2, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "fruit cherry is not registered");
  looked_up(state); /* none of them did half of its work */
  /* what was removed makes room */
  const void *old[] = {&lemon}, *other[] = {&lemon_again};
  assert_int_equal(hn_registry_remove(&fruits, old, 1, &e), HONE_OK);
  assert_int_equal(hn_registry_add(&fruits, other, 1, &e), HONE_OK);
  hn_registry_reset(&fruits);
  looked_up(state);
}

static void without_memory(void **state) {
  (void)state;
  const void *more[] = {&cherry}, *fewer[] = {&lemon};
  hone_error e = {0};
  hn_mem_fail_after(1);
  assert_int_equal(hn_registry_add(&fruits, more, 1, &e), HONE_ERROR_MEMORY);
  assert_true(hn_mem_failed());
  hn_mem_fail_after(1);
  assert_int_equal(hn_registry_remove(&fruits, fewer, 1, &e), HONE_ERROR_MEMORY);
  hn_mem_fail_after(0);
  looked_up(state);
}

/* More units than a first table would hold. */
static void many(void **state) {
  (void)state;
  enum { N = 1000 };
  static fruit berry[N];
  static char name[N][16], family[N][16];
  const void *all[N];
  hone_error e = {0};
  for (int i = 0; i < N; i++) {
    snprintf(name[i], sizeof *name, "berry%d", i);
    snprintf(family[i], sizeof *family, "bush%d", i % (N / 2));
    berry[i] = (fruit){family[i], name[i], false};
    all[i] = &berry[i];
  }
  assert_int_equal(hn_registry_add(&fruits, all, N, &e), HONE_OK);
  const hn_listing *l = hn_registry_take(&fruits);
  for (int i = 0; i < N / 2; i++) {
    char want[40];
    snprintf(want, sizeof want, "berry%d berry%d ", i, i + N / 2);
    assert_string_equal(names(l, family[i]), want);
  }
  assert_string_equal(names(l, "citrus"), "lemon orange ");
  hn_listing_drop(l);
  hn_registry_reset(&fruits);
}

static _Atomic bool stop;

/* A listing is whole: lime comes with cherry, or not at all. */
static void *read_on(void *wrong) {
  while (!atomic_load(&stop)) {
    const hn_listing *l = hn_registry_take(&fruits), *k = hn_listing_keep(l);
    const bool both = hn_listing_find(l, "citrus") && hn_listing_find(l, "stone");
    uint32_t n = 0;
    for (uint32_t i = hn_listing_first(l, "citrus"); i != HN_NO_UNIT; i = l->next[i]) n++;
    if (!both || l->n != (n == 3 ? 5 : 3)) ++*(int *)wrong;
    hn_listing_drop(l);
    hn_listing_drop(k);
  }
  return NULL;
}

static void many_readers(void **state) {
  (void)state;
  enum { READERS = 3, TURNS = 2000 };
  pthread_t thread[READERS];
  int wrong[READERS] = {0};
  const void *more[] = {&cherry, &lime};
  hone_error e = {0};
  for (int i = 0; i < READERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, read_on, &wrong[i]), 0);
  for (int i = 0; i < TURNS; i++) {
    assert_int_equal(hn_registry_add(&fruits, more, 2, &e), HONE_OK);
    assert_int_equal(hn_registry_remove(&fruits, more, 2, &e), HONE_OK);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < READERS; i++) {
    pthread_join(thread[i], NULL);
    assert_int_equal(wrong[i], 0);
  }
  assert_false(hn_registry_holds(&fruits, &lime));
  hn_registry_reset(&fruits);
}

/* Units that are written down when somebody asks for them: once, whatever comes and goes. */
static fruit basket[2];
static const void *made_units[2];
static int times_made;
static void make_fruits(void) {
  times_made++;
  basket[0] = plum, basket[1] = lime;
  made_units[0] = &basket[0], made_units[1] = &basket[1];
}
static hn_registry made_fruits = HN_REGISTRY_MADE(&kind, made_units, make_fruits);

static void made_when_asked(void **state) {
  (void)state;
  hone_error e = {0};
  assert_int_equal(times_made, 0);
  const hn_listing *l = hn_registry_take(&made_fruits);
  assert_string_equal(names(l, NULL), "plum lime ");
  assert_ptr_equal(hn_listing_find(l, "citrus"), &basket[1]);
  hn_listing_drop(l);
  const void *more[] = {&cherry};
  assert_int_equal(hn_registry_add(&made_fruits, more, 1, &e), HONE_OK);
  hn_registry_reset(&made_fruits);
  l = hn_registry_take(&made_fruits);
  assert_string_equal(names(l, NULL), "plum lime ");
  hn_listing_drop(l);
  assert_int_equal(times_made, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(looked_up),
      cmocka_unit_test(added_and_removed),
      cmocka_unit_test(refused),
      cmocka_unit_test(without_memory),
      cmocka_unit_test(many),
      cmocka_unit_test(many_readers),
      cmocka_unit_test(made_when_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
