/* Filling hone_error in one line. */
#ifndef HN_BASE_ERROR_H
#define HN_BASE_ERROR_H

#include "base/mem.h"

#include <hone/plugin.h>
#include <stdarg.h>

/* Records `what` (printf) with `status` in *error (which may be NULL) and returns status, so that callers can
 * write `return hn_fail(error, HONE_ERROR_INPUT, "...");`. The record's other parts are cleared. */
hone_status hn_fail(hone_error *error, hone_status status, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

/* Add one part to an error that hn_fail has recorded; no-ops on NULL. hn_error_where keeps an earlier, more
 * precise place and puts the new one before it: "m.onnx: node 'x'". */
void hn_error_where(hone_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hn_error_expected(hone_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hn_error_got(hone_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hn_error_hint(hone_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last word of a public function: `lost` is hn_mem_lost() at its beginning. Below it many say "no" when
 * memory is lacking (a pattern that does not fit, a tactic that does not take a step, a remark that is not
 * made), so a result that came about while an allocation failed is no result, and an error that came about
 * then may blame the wrong one: both become HONE_ERROR_MEMORY. */
hone_status hn_settle(hone_status status, uint64_t lost, hone_error *error);

/* Writes why a tactic does not take a step (why may be NULL) and returns false. */
bool hn_refuse(hone_reason *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The usual "cannot allocate N bytes for X". */
hone_status hn_fail_memory(hone_error *error, unsigned long long bytes, const char *purpose);

#endif
