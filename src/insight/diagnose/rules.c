/* The registry of rules. */
#include "insight/diagnose/rule.h"

#include "base/error.h"

#include <stdio.h>

#define RULE(name) extern const struct hn_rule hn_rule_##name;
#include "insight/diagnose/rules.def"
#undef RULE

static const void *const builtin[] = {
#define RULE(name) &hn_rule_##name,
#include "insight/diagnose/rules.def"
#undef RULE
};

static const char *rule_key(const void *unit) { return ((const struct hn_rule *)unit)->name; }

static void rule_label(const void *unit, char *buf, size_t size) {
  snprintf(buf, size, "%s", rule_key(unit));
}

static hone_status rule_check(const void *unit, hone_error *error) {
  const struct hn_rule *r = unit;
  if (r->name && *r->name && r->run) return HONE_OK;
  return hn_fail(error, HONE_ERROR_USAGE, "rule %.80s has no name or no run", r->name ? r->name : "?");
}

static const hn_kind kind = {.noun = "rule", .key = rule_key, .label = rule_label, .check = rule_check};
hn_registry hn_rules = HN_REGISTRY(&kind, builtin);
