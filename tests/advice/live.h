/* Profiles a network as hone does, on a machine and in an application that may have a bad habit. */
#ifndef TESTS_ADVICE_LIVE_H
#define TESTS_ADVICE_LIVE_H

#include "advice/lab.h"

#include <hone/model.h>
#include <hone/session.h>

typedef struct live {
  /* How it is asked to run. */
  uint32_t threads;      /* 0: all */
  const char *precision; /* NULL: f32 */
  double seconds;        /* of the record, about */
  /* What happens to it. Shares are of what a run takes without. */
  double sleep;      /* something sleeps between two of its steps */
  double pre, post;  /* the application's stages */
  double hesitates;  /* a kernel takes this much longer, in every fourth run */
  double slow;       /* a kernel takes this many times its time, in every run */
  size_t neighbours; /* processes that compute meanwhile */
} live;

/* Takes the model. NULL after a message. */
hone_facts *live_profile(const live *how, lab *chance, hone_model *model);
/* Waits until the machine is idle but for this process, at most so long; returns how long. */
double live_wait(double seconds);

#endif
