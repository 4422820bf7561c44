/* Which revision of the user's repository was measured. Git's own files are read, so that no program of a
 * folder's choosing runs (git's settings of a repository may name some) and git need not be there. Changes
 * that are not committed are not looked for: that would take git, and time. */
#include "cli/options/revision.h"
#include "cli/options/options.h"

#include <hone/hone.h>
#include <stdio.h>
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LINKS = 5, REVISION = 128, PACKED_MOST = 64 << 20 /* bytes: half a million references */ };

static bool first_line(const char *path, char *buf, size_t size) {
  const size_t n = hone_file_begin(path, buf, size - 1);
  buf[n] = 0;
  buf[strcspn(buf, "\r\n")] = 0;
  return buf[0];
}

static bool join(char *buf, size_t size, const char *folder, const char *name) {
  const int n = *name == '/' ? snprintf(buf, size, "%s", name) : snprintf(buf, size, "%s/%s", folder, name);
  return n > 0 && (size_t)n < size;
}

/* SHA-1 or SHA-256 in full. */
static bool is_revision(const char *text) {
  const size_t n = strspn(text, "0123456789abcdef");
  return (n == 40 || n == 64) && !text[n];
}

/* The folder that holds git's files for `folder`: .git there or above, or what a file .git names (work trees,
 * submodules). */
static bool find_git(const char *folder, char *git, size_t size) {
  char at[PATH_MAX], name[PATH_MAX], line[PATH_MAX];
  struct stat st;
  if (!realpath(folder, at)) return false;
  for (;;) {
    if (join(name, sizeof name, strcmp(at, "/") == 0 ? "" : at, ".git") && stat(name, &st) == 0) {
      if (S_ISDIR(st.st_mode)) return join(git, size, "", name);
      return first_line(name, line, sizeof line) && strncmp(line, "gitdir: ", 8) == 0 &&
             join(git, size, at, line + 8);
    }
    char *slash = strrchr(at, '/');
    if (!slash || !at[1]) return false;
    slash[slash == at] = 0;
  }
}

/* "HASH refs/heads/main" among the packed ones. */
static bool find_packed(const char *folder, const char *ref, char *buf, size_t size) {
  char path[PATH_MAX], *text = NULL;
  size_t n;
  bool found = false;
  if (!join(path, sizeof path, folder, "packed-refs") ||
      hone_file_read(path, PACKED_MOST, &text, &n, NULL) != HONE_OK)
    return false;
  for (char *line = text, *next; !found && *line; line = next) {
    const size_t length = strcspn(line, "\r\n");
    next = line + length + (line[length] != 0);
    line[length] = 0;
    char *space = strchr(line, ' ');
    if (!space || strcmp(space + 1, ref) != 0) continue;
    *space = 0;
    found = is_revision(line) && (size_t)snprintf(buf, size, "%s", line) < size;
  }
  hone_file_free(text);
  return found;
}

/* HEAD, and what it refers to: in the work tree's folder, else in the one that work trees share. */
static bool read_head(const char *git, char *buf, size_t size) {
  char shared[PATH_MAX], path[PATH_MAX], line[PATH_MAX];
  if (!join(path, sizeof path, git, "commondir") || !first_line(path, line, sizeof line) ||
      !join(shared, sizeof shared, git, line))
    snprintf(shared, sizeof shared, "%s", git);
  if (!join(path, sizeof path, git, "HEAD") || !first_line(path, line, sizeof line)) return false;
  for (int i = 0; i < LINKS; i++) {
    char ref[PATH_MAX];
    if (is_revision(line)) return (size_t)snprintf(buf, size, "%s", line) < size;
    if (strncmp(line, "ref: refs/", 10) != 0 || strstr(line, "..")) return false;
    snprintf(ref, sizeof ref, "%s", line + 5);
    if ((join(path, sizeof path, git, ref) && first_line(path, line, sizeof line)) ||
        (join(path, sizeof path, shared, ref) && first_line(path, line, sizeof line)))
      continue;
    return find_packed(shared, ref, buf, size);
  }
  return false;
}

static bool head_of(const char *folder, char *buf, size_t size) {
  char git[PATH_MAX];
  return find_git(folder, git, sizeof git) && read_head(git, buf, size);
}

bool cli_revision(const cli_args *args, const char *model, char *buf, size_t size) {
  const char *given = args->commit ? args->commit : getenv("GITHUB_SHA");
  char folder[PATH_MAX];
  buf[0] = 0;
  if (given && *given) return (size_t)snprintf(buf, size, "%s", given) < size;
  if (head_of(".", buf, size)) return true;
  const char *slash = model ? strrchr(model, '/') : NULL;
  if (slash &&
      (size_t)snprintf(folder, sizeof folder, "%.*s", (int)(slash - model) + 1, model) < sizeof folder &&
      head_of(folder, buf, size))
    return true;
  buf[0] = 0;
  return false;
}

/* The first line that git prints; no shell is between. */
static bool ask_git(char *const argv[], char *buf, size_t size) {
  int ends[2], code = -1;
  pid_t child;
  posix_spawn_file_actions_t files;
  buf[0] = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  bool started = posix_spawn_file_actions_init(&files) == 0;
  if (started) {
    started = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0 &&
              posix_spawn_file_actions_adddup2(&files, ends[1], 1) == 0 &&
              posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) == 0 &&
              posix_spawnp(&child, argv[0], &files, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&files);
  }
  close(ends[1]);
  FILE *out = started ? fdopen(ends[0], "r") : NULL;
  const bool read = out && fgets(buf, (int)size, out);
  if (out)
    fclose(out);
  else
    close(ends[0]);
  if (started && (waitpid(child, &code, 0) != child || !WIFEXITED(code) || WEXITSTATUS(code) != 0)) code = -1;
  if (!read || code != 0) buf[0] = 0;
  buf[strcspn(buf, "\r\n")] = 0;
  return buf[0] != 0;
}

bool cli_resolve_revision(const char *name, char *buf, size_t size) {
  char commit[REVISION + 16];
  buf[0] = 0;
  const int n = snprintf(commit, sizeof commit, "%s^{commit}", name);
  if (!*name || *name == '-' || n <= 0 || (size_t)n >= sizeof commit) return false;
  char *const argv[] = {"git", "rev-parse", "--verify", "--quiet", commit, NULL};
  return ask_git(argv, buf, size);
}
