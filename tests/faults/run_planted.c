/* Scenarios that do what no function may do when a call fails: the harness has to see it. */
#include "faults/planted.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hone_status refused(hone_error *error, hone_status status) {
  *error = (hone_error){.status = status, .what = "planted"};
  return status;
}

#define PLANT(name)                                                                                          \
  static hone_status name(const char *folder, const char *out_folder, fault_answer *answer, hone_error *error)
#define UNUSED (void)folder, (void)out_folder, (void)answer, (void)error

/* Every one of them takes two blocks, and is right while both are there. */
static bool take(void *block[2]) {
  block[0] = malloc(40);
  block[1] = malloc(50);
  return block[0] && block[1];
}
static void give_back(void *block[2]) {
  free(block[0]);
  free(block[1]);
}

PLANT(nothing_wrong) {
  UNUSED;
  void *block[2];
  const bool whole = take(block);
  give_back(block);
  if (!whole) return refused(error, HONE_ERROR_MEMORY);
  answer_line(answer, "whole");
  return HONE_OK;
}

PLANT(leak) {
  UNUSED;
  void *block[2];
  if (!take(block)) return refused(error, HONE_ERROR_MEMORY);
  give_back(block);
  answer_line(answer, "whole");
  return HONE_OK;
}

PLANT(crash) {
  UNUSED;
  void *block[2];
  if (!take(block)) abort();
  give_back(block);
  answer_line(answer, "whole");
  return HONE_OK;
}

PLANT(ended) {
  UNUSED;
  void *block[2];
  if (!take(block)) _exit(3);
  give_back(block);
  answer_line(answer, "whole");
  return HONE_OK;
}

PLANT(lie) {
  UNUSED;
  void *block[2];
  answer_line(answer, take(block) ? "whole" : "half");
  give_back(block);
  return HONE_OK;
}

PLANT(silence) {
  UNUSED;
  void *block[2];
  const bool whole = take(block);
  give_back(block);
  if (!whole) return HONE_ERROR_MEMORY;
  answer_line(answer, "whole");
  return HONE_OK;
}

PLANT(blame) {
  UNUSED;
  void *block[2];
  const bool whole = take(block);
  give_back(block);
  if (!whole) return refused(error, HONE_ERROR_INPUT);
  answer_line(answer, "whole");
  return HONE_OK;
}

PLANT(open_file) {
  UNUSED;
  void *block[2];
  const bool whole = take(block);
  give_back(block);
  if (!whole && open("/dev/null", O_RDONLY) >= 0) return refused(error, HONE_ERROR_MEMORY);
  answer_line(answer, "whole");
  return HONE_OK;
}

/* A file that is written in place: what stays when the second part is refused is half of it. */
PLANT(partial) {
  UNUSED;
  char path[400];
  snprintf(path, sizeof path, "%s/f", out_folder);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) return refused(error, HONE_ERROR_IO);
  const bool whole = write(fd, "first ", 6) == 6 && write(fd, "second", 6) == 6;
  close(fd);
  if (!whole) return refused(error, HONE_ERROR_IO);
  answer_line(answer, "whole");
  return HONE_OK;
}

/* The name of a temporary file that is left behind. */
PLANT(temporary) {
  UNUSED;
  char from[400], to[400];
  snprintf(from, sizeof from, "%s/f.tmp", out_folder);
  snprintf(to, sizeof to, "%s/f", out_folder);
  int fd = open(from, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) return refused(error, HONE_ERROR_IO);
  close(fd);
  if (rename(from, to) != 0) return refused(error, HONE_ERROR_IO);
  answer_line(answer, "whole");
  return HONE_OK;
}

/* A first failure spoils what comes later. */
PLANT(spoilt) {
  UNUSED;
  static bool before;
  void *block[2];
  const bool whole = take(block);
  give_back(block);
  if (!whole) before = true;
  if (!whole) return refused(error, HONE_ERROR_MEMORY);
  answer_line(answer, before ? "spoilt" : "whole");
  return HONE_OK;
}

static const struct {
  scenario s;
  const char *seen_as; /* in what the harness says; NULL: it must say nothing */
} plants[] = {
    {{"nothing wrong", NULL, nothing_wrong, false}, NULL},
    {{"a leak", NULL, leak, false}, "not freed"},
    {{"a crash", NULL, crash, false}, "died of signal"},
    {{"an end of the process", NULL, ended, false}, "ended the process"},
    {{"another answer", NULL, lie, false}, "another answer"},
    {{"an error without words", NULL, silence, false}, "says nothing"},
    {{"another's fault", NULL, blame, false}, "lack of memory"},
    {{"an open file", NULL, open_file, false}, "stay open"},
    {{"half a file", NULL, partial, false}, "behind"},
    {{"a temporary file", NULL, temporary, false}, "behind"},
    {{"a spoilt state", NULL, spoilt, false}, "afterwards"},
};

int fault_planted(void) {
  int blind = 0;
  for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
    const char *want = plants[i].seen_as;
    const loop_options o = {.which = LOOP_EVERY, .planted = want ? want : ""};
    const int found = fault_loop(&plants[i].s, &o);
    if ((found > 0) == (want != NULL)) continue;
    printf("WRONG %s was %s\n", plants[i].s.name, want ? "not seen" : "made up");
    blind++;
  }
  printf("%zu plants, %d of them not seen\n", sizeof plants / sizeof *plants, blind);
  return blind;
}
