/* The command in a folder of its own, which goes with the test, and a small model there. */
#ifndef HONE_TESTS_CLI_COMMAND_H
#define HONE_TESTS_CLI_COMMAND_H

#include "cli/process.h"

extern char folder[64];
extern char tiny[160]; /* the model's path */

#define RUN(...) process_run(folder, 0, (const char *const[]){__VA_ARGS__, NULL})
#define INTERRUPT(ms, ...) process_run(folder, ms, (const char *const[]){__VA_ARGS__, NULL})

/* Of cmocka's groups. */
int setup(void **state);
int teardown(void **state);

/* Files in the folder. */
void write_text(const char *name, const char *text);
bool exists(const char *name);
/* No temporary file was left anywhere below the folder. */
void assert_no_leftovers(void);

/* Exit code, and one line on standard error that starts as every error does and holds `words`. */
void expect_error(process p, int code, const char *words);
/* doc.a, or doc.a.b (b may be NULL); fails the test when it is no number. */
double number(const json_t *doc, const char *a, const char *b);

#endif
