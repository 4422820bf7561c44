/* The commit that a report names. */
#include "cli/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* A revision as git makes one, without git: HEAD, a ref in its own file or among the packed ones. */
static void make_repository(const char *name, const char *head, const char *ref, const char *value) {
  char path[256];
  static const char *const parts[] = {"", "/.git", "/.git/refs", "/.git/refs/heads", "/deep"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    snprintf(path, sizeof path, "%s/%s%s", folder, name, parts[i]);
    mkdir(path, 0777);
  }
  snprintf(path, sizeof path, "%s/.git/HEAD", name);
  write_text(path, head);
  snprintf(path, sizeof path, "%s/.git/%s", name, ref);
  write_text(path, value);
}

#define SHA1 "0123456789abcdef0123456789abcdef01234567"
#define SHA2 "89abcdef0123456789abcdef0123456789abcdef"

static void expect_commit(const char *at, const char *model, const char *want) {
  char where[256];
  snprintf(where, sizeof where, "%s/%s", folder, at);
  process p =
      process_run(where, 0, (const char *const[]){"bench", model, "-n", "1", "-w", "0", "--json", NULL});
  if (p.code != 0) fail_msg("%s", p.err);
  json_t *doc = process_json(&p);
  const char *got = json_string_value(json_object_get(doc, "commit"));
  if (!json_object_get(doc, "commit") || (got != NULL) != (want != NULL) || (want && strcmp(got, want) != 0))
    fail_msg("in %s: commit %s, not %s", at, got ? got : "null", want ? want : "null");
  json_decref(doc);
  process_free(&p);
}

/* The commit of a report is the user's repository's: that of the working directory, else of the model. */
static void test_commit(void **state) {
  (void)state;
  char model[256], *sha = getenv("GITHUB_SHA"), *kept = sha ? strdup(sha) : NULL;
  unsetenv("GITHUB_SHA");
  make_repository("loose", "ref: refs/heads/main\n", "refs/heads/main", SHA1 "\n");
  make_repository("packed", "ref: refs/heads/v1\n", "packed-refs",
                  "# pack-refs with: peeled\n" SHA1 " refs/heads/v10\n" SHA2 " refs/heads/v1\n^" SHA1 "\n");
  make_repository("detached", SHA2 "\n", "refs/heads/main", SHA1 "\n");
  make_repository("empty", "ref: refs/heads/main\n", "refs/heads/other", SHA1 "\n");
  make_repository("escape", "ref: refs/../../secret\n", "refs/heads/main", SHA1 "\n");
  write_text("secret", SHA1 "\n");
  expect_commit("loose/deep", tiny, SHA1);
  expect_commit("packed", tiny, SHA2);
  expect_commit("detached", tiny, SHA2);
  expect_commit("empty", tiny, NULL);
  expect_commit("escape", tiny, NULL);
  expect_commit(".", tiny, NULL); /* outside of any */
  /* A work tree's own HEAD, the refs that it shares. */
  char path[256];
  snprintf(path, sizeof path, "%s/tree2", folder);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "%s/loose/.git/worktrees", folder);
  mkdir(path, 0777);
  strcat(path, "/t");
  mkdir(path, 0777);
  write_text("loose/.git/worktrees/t/HEAD", "ref: refs/heads/side\n");
  write_text("loose/.git/worktrees/t/commondir", "../..\n");
  write_text("loose/.git/refs/heads/side", SHA2 "\n");
  write_text("tree2/.git", "gitdir: ../loose/.git/worktrees/t\n");
  expect_commit("tree2", tiny, SHA2);
  /* From outside, the repository of the model counts. */
  snprintf(model, sizeof model, "%s/loose/deep/m.onnx", folder);
  process p = RUN("zoo", "many_inputs", "-o", model);
  assert_int_equal(p.code, 0);
  process_free(&p);
  expect_commit(".", "loose/deep/m.onnx", SHA1);
  expect_commit("detached", model, SHA2);
  setenv("GITHUB_SHA", "fromci", 1);
  expect_commit("loose", tiny, "fromci");
  unsetenv("GITHUB_SHA");
  if (kept) setenv("GITHUB_SHA", kept, 1);
  free(kept);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_commit),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
