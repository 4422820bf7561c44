#include "base/fault.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Any thread may be the first to ask; all of them read the same environment. */
static _Atomic(const char *) active;
static atomic_bool asked, reached;
enum { MOST_MET = 512 }; /* places in the sources that ask */
static _Atomic(const char *) met[MOST_MET];

static void keep(const char *name) {
  for (unsigned i = 0; i < MOST_MET; i++) {
    const char *there = NULL;
    if (atomic_compare_exchange_strong(&met[i], &there, name) || there == name) return;
  }
}

const char *hn_fault_met(unsigned i) { return i < MOST_MET ? atomic_load(&met[i]) : NULL; }

void hn_fault_set(const char *name) {
  for (unsigned i = 0; name && *name == '?' && i < MOST_MET; i++) atomic_store(&met[i], NULL);
  atomic_store_explicit(&active, name, memory_order_relaxed);
  atomic_store_explicit(&asked, true, memory_order_release);
}

bool hn_fault_active(const char *name) {
  if (!atomic_load_explicit(&asked, memory_order_acquire)) hn_fault_set(getenv("HONE_FAULT"));
  const char *a = atomic_load_explicit(&active, memory_order_relaxed);
  if (a && *a == '?') keep(name);
  const bool is = a && strcmp(a, name) == 0;
  if (is) atomic_store_explicit(&reached, true, memory_order_relaxed);
  return is;
}

bool hn_fault_reached(void) { return atomic_load_explicit(&reached, memory_order_relaxed); }
