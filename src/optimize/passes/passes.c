/* The registry of passes. */
#include "optimize/match/patterns.h"
#include "optimize/passes/common/pass.h"
#include "optimize/passes/optimize.h"

#define PASS(name) extern const struct hn_pass hn_pass_##name;
#include "optimize/passes/passes.def"
#undef PASS

static const void *const builtin[] = {
#define PASS(name) &hn_pass_##name,
#include "optimize/passes/passes.def"
#undef PASS
};

static const char *pass_key(const void *unit) { return ((const hn_pass *)unit)->name; }

static void pass_label(const void *unit, char *buf, size_t size) {
  snprintf(buf, size, "%s", pass_key(unit));
}

static hone_status pass_check(const void *unit, hone_error *error) {
  const hn_pass *p = unit;
  if (p->name && *p->name && p->about && !!p->match + !!p->visit + !!p->run == 1 && !p->match == !p->patterns)
    return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "pass %.80s is not whole", p->name ? p->name : "?");
  hn_error_expected(error, "a name, what it is about, and patterns with match, or visit, or run");
  return HONE_ERROR_USAGE;
}

static const hn_kind kind = {.noun = "pass", .key = pass_key, .label = pass_label, .check = pass_check};
hn_registry hn_passes = HN_REGISTRY(&kind, builtin);

hn_registry *hn_pattern_registry(void) { return &hn_patterns; }
