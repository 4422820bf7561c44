#include "base/fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Any thread may be the first to ask; all of them read the same environment. */
static _Atomic(const char *) active;
static atomic_bool asked;

void hn_fault_set(const char *name) {
  atomic_store_explicit(&active, name, memory_order_relaxed);
  atomic_store_explicit(&asked, true, memory_order_release);
}

bool hn_fault_active(const char *name) {
  if (!atomic_load_explicit(&asked, memory_order_acquire)) hn_fault_set(getenv("HONE_FAULT"));
  const char *a = atomic_load_explicit(&active, memory_order_relaxed);
  return a && strcmp(a, name) == 0;
}
