/* Why tactics did not take a step, while that is found out. */
#ifndef HN_OPTIMIZE_STEP_REFUSAL_H
#define HN_OPTIMIZE_STEP_REFUSAL_H

#include "base/arena.h"
#include "base/vec.h"

#include <hone/session.h>

/* A list under construction; its words live in the arena. Zeroed but for the arena it is empty. */
typedef struct hn_refusals {
  hn_arena *arena;
  HN_VEC(hone_refusal) list;
} hn_refusals;

/* Appends one; list may be NULL. by: a name that outlives the list. Where memory is short the refusal is
 * lost, and hn_mem_lost counts it. */
void hn_refuse_add(hn_refusals *list, hone_refusal_why why, const char *by, const char *text);
void hn_refuse_all(hn_refusals *list, const hone_refusal *more, uint32_t n);
/* The list for good, in the arena; its number goes to *n. Frees what it was made in. */
const hone_refusal *hn_refusals_take(hn_refusals *list, uint32_t *n);

#endif
