#include "optimize/passes/common/report.h"

void hn_pass_report_free(hn_pass_report *r) {
  hn_vec_free(&r->records);
  hn_vec_free(&r->totals);
  hn_arena_free(&r->arena);
  *r = (hn_pass_report){0};
}
