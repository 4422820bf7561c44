#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

static const char *active;
static bool asked;

void hn_fault_set(const char *name) {
  active = name;
  asked = true;
}

bool hn_fault_active(const char *name) {
  if (!asked) hn_fault_set(getenv("HONE_FAULT"));
  return active && strcmp(active, name) == 0;
}
