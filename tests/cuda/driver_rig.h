/* What tests of the CUDA backend's driver layer stand on: a process for each case, kernels, and a device with
 * a queue and two tensors. They run on the fake driver (HONE_LIBCUDA and HONE_LIBNVRTC), or, with neither
 * set, on the machine's GPU; failures on purpose need the fake one. What the driver answers is set in the
 * environment of a case. */
#ifndef HN_TEST_DRIVER_RIG_H
#define HN_TEST_DRIVER_RIG_H

#include "backends/cuda/backend.h"
#include "backends/cuda/driver/context.h"
#include "backends/cuda/driver/modules.h"
#include "base/error.h"

#include <hone/hone.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const hn_backend *const b = &hn_backend_cuda;

/* ------------------------------------------------------------------ a process for each case */

/* What a case tells the test. */
typedef struct answer {
  hone_error error;
  char note[600];
} answer;

typedef void (*scene)(answer *a);

/* In a case: ends it. */
#define MUST(x)                                                                                              \
  do {                                                                                                       \
    if (!(x)) {                                                                                              \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                                \
      _exit(99);                                                                                             \
    }                                                                                                        \
  } while (0)
#define MUST_OK(x) rig_must_ok((x), a, __LINE__, #x)
void rig_must_ok(hone_status status, const answer *a, int line, const char *text);

/* Runs the scene in a child; `settings` are NAME=VALUE. Returns what it wrote. */
answer rig_play(scene s, const char *const *settings);
#define PLAY(s, ...) rig_play((s), (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

void rig_expect(const answer *a, hone_status status, const char *const *words);
#define EXPECT(a, status, ...) rig_expect(&(a), (status), (const char *const[]){__VA_ARGS__, NULL})

bool rig_fake(void);
#define NEEDS_FAKE()                                                                                         \
  if (!rig_fake()) skip()

/* Runs the tests of a program, whose kernel cache is a folder of its own; says SKIP where there is no GPU,
 * nor a fake driver. Returns the program's exit code. */
int rig_run(const struct CMUnitTest *tests, size_t n);

/* Files in this program's kernel cache; path: of one of them. */
int rig_cubins(char *path, size_t size);
void rig_empty_cache(void);

/* ------------------------------------------------------------------ a device that works */

enum { N = 20000 };

typedef struct rig {
  hn_device *d;
  hn_queue *q;
  float *host, *x, *y; /* host: N that are put in, N that come out */
} rig;

void rig_open(rig *r, answer *a);
void rig_close(rig *r);

/* The kernels' text, and what they are told. */
extern const char rig_text[];
typedef struct rig_args {
  const void *in;
  void *out;
  float by;
  int n;
} rig_args;

/* The inputs times `by`; backwards. */
extern const hn_cuda_kernel rig_scale, rig_reverse;
hone_status rig_launch(rig *r, const hn_cuda_kernel *k, const void *in, void *out, float by,
                       hone_error *error);
hone_status rig_to_device(rig *r, hone_error *error);
hone_status rig_to_host(rig *r, const void *from, hone_error *error); /* waits */
void rig_must_be(const rig *r, float by, bool reversed);

/* What a healthy device does; every failure that can be survived is followed by it. */
void rig_work(answer *a);

#endif
