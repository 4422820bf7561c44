/* The course of a test: which samples a context takes next, and what became of them. It knows no clock and no
 * thread: who calls says what time it is (ns since the start) and keeps calls apart. */
#ifndef HN_API_LOAD_COURSE_H
#define HN_API_LOAD_COURSE_H

#include "api/load/schedule.h"

#define HN_RATE_LEAST 1e-6 /* a second: pauses between arrivals still fit into 64 bits of ns */

typedef enum hn_take {
  HN_TAKE_RUN,   /* something was taken: run it */
  HN_TAKE_LATER, /* nothing before *until */
  HN_TAKE_WAIT,  /* nothing before something else is done */
  HN_TAKE_OVER   /* no more */
} hn_take;

/* Samples that one run takes. */
typedef struct hn_taken {
  uint32_t n;
  uint32_t *sample; /* [rows] */
  uint64_t *due;    /* [rows] ns: when its latency begins */
  uint64_t last;    /* number of the last query among them */
  uint64_t at;      /* ns: when they were taken */
} hn_taken;

hone_status hn_taken_make(uint32_t rows, hn_taken *out, hone_error *error);
void hn_taken_free(hn_taken *taken);

typedef struct hn_times {
  uint64_t *ns;
  size_t n, room;
} hn_times;

typedef struct hn_course {
  hone_load_settings s;
  hn_schedule schedule;
  uint32_t in_flight, rows;
  bool stopped; /* take no more */
  bool interrupted, gave_up;
  uint64_t allowed; /* server, with give_up: late ones that a valid test may have */
  uint64_t issued, left,
      open;            /* queries; samples of the last one that nobody took; taken ones that are not done */
  uint64_t issued_at;  /* ns: the last query */
  uint64_t final_done; /* ns: when the last query was answered */
  uint64_t answered, last_done; /* queries; ns: the last answer of all */
  hn_times latency;             /* of samples, multi: of queries */
  hn_times runs;
  uint64_t busy, over;                  /* ns of runs; samples over the bound */
  double waited, over_waited, over_all; /* ns, sums over samples */
  uint64_t samples;
} hn_course;

/* HONE_ERROR_USAGE says what is wrong with the settings. */
hone_status hn_course_check(const hone_load_settings *settings, uint32_t in_flight, uint32_t rows,
                            hone_error *error);
/* Checks them, too. */
hone_status hn_course_open(const hone_load_settings *settings, uint32_t in_flight, uint32_t rows,
                           hn_course *out, hone_error *error);
void hn_course_close(hn_course *course);
hn_take hn_course_take(hn_course *course, uint64_t now, hn_taken *out, uint64_t *until);
/* The run of these is done. HONE_ERROR_MEMORY: they are not counted. */
hone_status hn_course_done(hn_course *course, const hn_taken *taken, uint64_t now, hone_error *error);
/* What came of it; sorts the latencies. */
void hn_course_result(hn_course *course, hone_load_result *out);

#endif
