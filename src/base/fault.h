/* Failures on purpose, compiled in only for tests (HN_FAULTS): HONE_FAULT=name in the environment switches
 * one on. */
#ifndef HN_BASE_FAULT_H
#define HN_BASE_FAULT_H

#include <stdbool.h>

/* Name of the active fault or NULL; also set by tests. Not thread-safe against running work. */
void hn_fault_set(const char *name);
bool hn_fault_active(const char *name);
/* From hn_fault_set("?") on nothing fails, but names that are asked for are kept: the i-th of them (one may
 * come more than once), or NULL behind the last. */
const char *hn_fault_met(unsigned i);
/* Code that the active fault is in has run. */
bool hn_fault_reached(void);

#ifdef HN_FAULTS
#define HN_FAULT(name) hn_fault_active(name)
#else
#define HN_FAULT(name) 0
#endif

#endif
