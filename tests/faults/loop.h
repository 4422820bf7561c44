/* Does something again and again, in a child each time, with another call to the system failing. */
#ifndef HN_TESTS_FAULTS_LOOP_H
#define HN_TESTS_FAULTS_LOOP_H

#include <hone/status.h>
#include <stdbool.h>
#include <stddef.h>

/* What a scenario finds out, as lines of text: it must be the same whenever HONE_OK comes back. The room is
 * fixed, nothing here allocates. */
typedef struct fault_answer fault_answer;
void answer_line(fault_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A hash of the bytes. */
void answer_bytes(fault_answer *answer, const char *what, const void *bytes, size_t size);

typedef struct scenario {
  const char *name;
  /* Writes what `run` reads below `folder`; NULL: nothing. Aborts when it cannot. */
  void (*prepare)(const char *folder);
  /* Reads from `folder`, writes into out_folder alone, frees everything, and returns what failed first. */
  hone_status (*run)(const char *folder, const char *out_folder, fault_answer *answer, hone_error *error);
  bool
      any_bytes; /* what it writes differs from time to time (dates, databases): only the names are checked */
} scenario;

typedef struct loop_options {
  enum { LOOP_PLACES, LOOP_STACKS, LOOP_EVERY } which; /* calls of other places, by other ways, all */
  unsigned long only;                                  /* not 0: that call alone, with its stack */
  int mode;                                            /* of `only`: fault_mode */
  bool list;                                           /* print every chosen call */
  const char *planted; /* nothing is shown, and only what is said with these words counts as wrong */
} loop_options;

/* Prints a summary and what is wrong; the number of wrong ones. */
int fault_loop(const scenario *s, const loop_options *options);

#endif
