/* See row.h. */
#include "cli/op/row.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void op_row_refused(op_row *row, const char *why) {
  uint32_t i = 0;
  op_refusal one = {.times = 1};
  snprintf(one.why, sizeof one.why, "%s", why);
  while (i < row->n_refusals && strcmp(row->refusal[i].why, one.why) != 0) i++;
  if (i == OP_REASONS) return;
  if (i == row->n_refusals) {
    row->refusal[row->n_refusals++] = one;
    return;
  }
  row->refusal[i].times++;
  for (; i && row->refusal[i].times > row->refusal[i - 1].times; i--) {
    const op_refusal was = row->refusal[i];
    row->refusal[i] = row->refusal[i - 1];
    row->refusal[i - 1] = was;
  }
}

uint32_t op_row_failures(const op_row *row) {
  return row->n_failed < OP_FAILURES ? row->n_failed : OP_FAILURES;
}

void op_row_failed(op_row *row, uint32_t at, double elements, const char *text, const char *format, ...) {
  uint32_t i = op_row_failures(row);
  row->n_failed++;
  if (i == OP_FAILURES && row->failure[--i].elements <= elements) return;
  for (; i && row->failure[i - 1].elements > elements; i--) row->failure[i] = row->failure[i - 1];
  op_failure *f = &row->failure[i];
  *f = (op_failure){.at = at, .elements = elements};
  va_list args;
  va_start(args, format);
  vsnprintf(f->what, sizeof f->what, format, args);
  va_end(args);
  snprintf(f->text, sizeof f->text, "%s", text);
}
