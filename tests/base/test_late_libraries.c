/* Libraries that are loaded when they are needed: what is not there is one error, and is asked for again. */
#include "base/fault.h"
#include "base/late/late.h"
#include "base/late/png.h"
#include "base/late/sqlite.h"

#include <hone/history.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if defined(HN_FAULTS) && defined(HN_LATE_SQLITE)
static void what_is_not_there_is_an_error(void **state) {
  (void)state;
  hone_error error = {0};
  hone_history *history = NULL;
  hn_fault_set("late_library");
  assert_int_equal(hone_history_open("never-made.db", true, &history, &error), HONE_ERROR_MISSING);
  assert_null(history);
  assert_non_null(strstr(error.what, "SQLite is not on this machine"));
  assert_non_null(strstr(error.hint, "the history"));
  hn_fault_set(NULL);
  assert_int_equal(hn_late_need(HN_LATE_LIBRARY_SQLITE, &error), HONE_OK);
  hn_fault_set("late_library"); /* what is loaded stays */
  assert_int_equal(hn_late_need(HN_LATE_LIBRARY_SQLITE, &error), HONE_OK);
  hn_fault_set(NULL);
}
#endif

static void tables_are_filled(void **state) {
  (void)state;
  hone_error error = {0};
  for (int i = 0; i < HN_LATE_LIBRARY_COUNT; i++)
    assert_int_equal(hn_late_need((hn_late_library)i, &error), HONE_OK);
  sqlite3 *db = NULL;
  assert_int_equal(sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
  png_image image;
  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  assert_int_equal(png_image_begin_read_from_memory(&image, "no picture", 10), 0);
  png_image_free(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(HN_FAULTS) && defined(HN_LATE_SQLITE)
    cmocka_unit_test(what_is_not_there_is_an_error),
#endif
    cmocka_unit_test(tables_are_filled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
