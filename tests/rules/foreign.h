/* Profiles as other tools write them, made here: what their readers would name first is known. */
#ifndef TESTS_RULES_FOREIGN_H
#define TESTS_RULES_FOREIGN_H

#include <hone/hone.h>

enum { FOREIGN_FILES = 4 };

/* One operator of one run. */
typedef struct foreign_row {
  const char *name, *type; /* in the words of the tool */
  double us;
  const char *dtype;      /* in the words of the tool */
  const char *where;      /* provider, kind of task, implementation; "copy", "host", "wait" in traces */
  double compute, memory; /* Nsight Compute: percent of the peak */
} foreign_row;

typedef struct foreign {
  char folder[256], paths[FOREIGN_FILES][320];
  const char *files[FOREIGN_FILES];
  size_t count;
  hone_facts *facts;
  hone_profile *profile;
  hone_findings *findings;
} foreign;

void foreign_begin(foreign *f);
/* Writers: each adds one file of one tool. marked: iterations stand in the trace; idle_us: between the runs.
 */
void foreign_trt_profile(foreign *f, const foreign_row *rows, size_t n);
void foreign_trt_layers(foreign *f, const foreign_row *rows, size_t n);
void foreign_trt_times(foreign *f, double h2d_ms, double compute_ms, double d2h_ms);
void foreign_ort(foreign *f, const foreign_row *rows, size_t n, double gap_us);
void foreign_kineto(foreign *f, const foreign_row *rows, size_t n, bool marked, double idle_us);
void foreign_nsys(foreign *f, const foreign_row *rows, size_t n, bool marked, double idle_us);
void foreign_ncu(foreign *f, const foreign_row *rows, size_t n);
void foreign_ascend(foreign *f, const foreign_row *rows, size_t n, int runs, double gap_us);
void foreign_openvino(foreign *f, const foreign_row *rows, size_t n);
void foreign_onednn(foreign *f, const foreign_row *rows, size_t n);
/* Imports the files together and diagnoses them; fails the test on any error. */
void foreign_diagnose(foreign *f, hone_language language);
void foreign_end(foreign *f);

#endif
