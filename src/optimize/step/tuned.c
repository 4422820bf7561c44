#include "optimize/step/tuned.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/os.h"
#include "base/vec.h"

#include <hone/version.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "hone-tactics 1 "
enum { CHECKSUM = 16, LARGEST = 64 << 20 };

struct hn_tuned {
  hn_arena arena;
  pthread_mutex_t lock;
  const char *key; /* NULL: not asked for yet, made from */
  const hn_backend *backend;
  const hn_device *device;
  hn_map by_signature;
  HN_VEC(const hn_tuned_step *) steps; /* in the order in which they came: files are reproducible */
};

static hn_tuned *create(void) {
  hn_tuned *t = hn_calloc(1, sizeof *t);
  if (t) pthread_mutex_init(&t->lock, NULL);
  return t;
}

static bool set_key(hn_tuned *t, const char *key) {
  char *copy = hn_arena_strdup(&t->arena, key);
  t->key = copy;
  if (!copy) return false;
  for (; *copy; copy++)
    if ((unsigned char)*copy < ' ') *copy = ' '; /* one line */
  return true;
}

hn_tuned *hn_tuned_create(const char *key) {
  hn_tuned *t = create();
  if (t && set_key(t, key)) return t;
  hn_tuned_destroy(t);
  return NULL;
}

/* Only a file needs it, and most starts have none: a processor's name takes four traps of a virtual machine.
 * NULL when out of memory. */
static const char *key_of(hn_tuned *t) {
  char device[400] = "", key[512];
  pthread_mutex_lock(&t->lock);
  if (!t->key) {
    if (t->backend->fingerprint) t->backend->fingerprint(t->device, device, sizeof device);
    snprintf(key, sizeof key, "hone %s | %s", hone_version(), device);
    set_key(t, key);
  }
  const char *made = t->key;
  pthread_mutex_unlock(&t->lock);
  return made;
}

/* An empty one with the same key. */
static hn_tuned *another(hn_tuned *t) {
  const char *key = key_of(t);
  return key ? hn_tuned_create(key) : NULL;
}

void hn_tuned_destroy(hn_tuned *t) {
  if (!t) return;
  hn_map_free(&t->by_signature);
  hn_vec_free(&t->steps);
  hn_arena_free(&t->arena);
  pthread_mutex_destroy(&t->lock);
  hn_free(t);
}

size_t hn_tuned_count(hn_tuned *t) {
  pthread_mutex_lock(&t->lock);
  size_t n = t->steps.len;
  pthread_mutex_unlock(&t->lock);
  return n;
}

const hn_tuned_step *hn_tuned_find(hn_tuned *t, const char *signature) {
  pthread_mutex_lock(&t->lock);
  const hn_tuned_step *s = hn_map_get(&t->by_signature, signature);
  pthread_mutex_unlock(&t->lock);
  return s;
}

static bool put(hn_tuned *t, const hn_tuned_step *from) {
  hn_tuned_step *s = HN_NEW(&t->arena, hn_tuned_step);
  hn_timing *timing = HN_NEW_ARRAY(&t->arena, hn_timing, from->n);
  if (!s || !timing) return false;
  *s = *from;
  s->timing = timing;
  s->signature = hn_arena_strdup(&t->arena, from->signature);
  bool ok = s->signature != NULL;
  for (uint32_t i = 0; i < from->n; i++) {
    timing[i] = from->timing[i];
    timing[i].tactic = hn_arena_strdup(&t->arena, from->timing[i].tactic);
    ok = ok && timing[i].tactic;
  }
  if (!ok) return false;
  const hn_tuned_step *old = hn_map_get(&t->by_signature, s->signature);
  if (!old) {
    if (!hn_vec_push(&t->steps, s)) return false;
    if (hn_map_set(&t->by_signature, s->signature, s)) return true;
    t->steps.len--;
    return false;
  }
  s->signature = old->signature; /* the map's key */
  for (size_t i = 0; i < t->steps.len; i++)
    if (t->steps.ptr[i] == old) t->steps.ptr[i] = s;
  return hn_map_set(&t->by_signature, s->signature, s);
}

bool hn_tuned_put(hn_tuned *t, const hn_tuned_step *step) {
  if (!step->n || step->n > HN_MAX_TIMINGS || step->chosen >= step->n) return false;
  pthread_mutex_lock(&t->lock);
  bool ok = put(t, step);
  pthread_mutex_unlock(&t->lock);
  return ok;
}

/* ------------------------------------------------------------------ lines */

#define DIFFERS "differs"

static void format_step(const hn_tuned_step *s, hn_str *out) {
  hn_str_printf(out, "%u\t", s->chosen);
  for (uint32_t i = 0; i < s->n; i++)
    hn_str_printf(out, "%s%s:%d:%u:%.6g:%.3g%s", i ? " " : "", s->timing[i].tactic, s->timing[i].version,
                  s->timing[i].threads, s->timing[i].seconds, s->timing[i].spread,
                  s->timing[i].differs ? ":" DIFFERS : "");
  hn_str_printf(out, "\t%s\n", s->signature);
}

/* One candidate, cut out of the line in place. */
static bool parse_timing(char *word, hn_timing *t) {
  char *field[6], *save = NULL, *end;
  int n = 0;
  for (char *w = strtok_r(word, ":", &save); w && n < 6; w = strtok_r(NULL, ":", &save)) field[n++] = w;
  t->differs = n == 6 && strcmp(field[5], DIFFERS) == 0;
  if (n != 5 && !t->differs) return false;
  t->tactic = field[0];
  t->version = (int32_t)strtol(field[1], &end, 10);
  if (*end) return false;
  t->threads = (uint32_t)strtoul(field[2], &end, 10);
  if (*end) return false;
  t->seconds = strtod(field[3], &end);
  if (*end || !isfinite(t->seconds) || t->seconds <= 0) return false;
  t->spread = strtod(field[4], &end);
  return !*end && isfinite(t->spread) && t->spread >= 0;
}

static bool parse_step(char *line, hn_timing timing[HN_MAX_TIMINGS], hn_tuned_step *s) {
  char *list = strchr(line, '\t'), *signature = list ? strchr(list + 1, '\t') : NULL, *end, *save = NULL;
  if (!signature) return false;
  *list++ = *signature++ = 0;
  *s = (hn_tuned_step){.signature = signature, .timing = timing};
  s->chosen = (uint32_t)strtoul(line, &end, 10);
  if (end == line || *end || !*signature) return false;
  for (char *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save))
    if (s->n == HN_MAX_TIMINGS || !parse_timing(w, &timing[s->n++])) return false;
  return s->chosen < s->n;
}

/* ------------------------------------------------------------------ files */

/* The text behind line 1 as a copy to cut up, NULL with *status set when there is none. */
static char *read_body(const char *path, hone_status *status, hone_error *error) {
  hn_file file;
  *status = HONE_OK;
  if (!hn_path_exists(path)) return NULL;
  *status = hn_file_map(path, NULL, HN_FILE_CACHE, &file, error);
  if (*status != HONE_OK) return NULL;
  const char *text = (const char *)file.data;
  const size_t head = strlen(MAGIC) + CHECKSUM + 1;
  char sum[CHECKSUM + 1], *body = NULL;
  if (file.size > LARGEST || file.size < strlen(MAGIC) || memcmp(text, "hone-tactics ", 13) != 0) {
    *status = hn_fail(error, HONE_ERROR_INPUT, "no file of tuned tactics");
  } else if (memcmp(text, MAGIC, strlen(MAGIC)) != 0) {
    *status = hn_fail(error, HONE_ERROR_INPUT, "made by another version of hone");
  } else {
    bool good = file.size >= head && text[head - 1] == '\n' && !memchr(text, 0, file.size) &&
                (file.size == head || text[file.size - 1] == '\n');
    if (good) {
      snprintf(sum, sizeof sum, "%016llx", (unsigned long long)hn_hash(text + head, file.size - head, 0));
      good = memcmp(sum, text + strlen(MAGIC), CHECKSUM) == 0;
    }
    if (!good) *status = hn_fail(error, HONE_ERROR_INPUT, "damaged: the checksum does not fit");
  }
  if (*status == HONE_OK) {
    body = hn_malloc(file.size - head + 1);
    if (!body) {
      *status = hn_fail_memory(error, file.size, "tuned tactics");
    } else {
      memcpy(body, text + head, file.size - head);
      body[file.size - head] = 0;
    }
  }
  hn_file_unmap(&file);
  return body;
}

/* Feeds this key's steps into `mine` (may be NULL) and the lines of all others into `others` (may be NULL).
 */
static hone_status split_body(char *body, const char *key, hn_tuned *mine, hn_str *others,
                              hone_error *error) {
  bool ours = false;
  hn_timing timing[HN_MAX_TIMINGS];
  hn_tuned_step step;
  char *next;
  for (char *line = body; *line; line = next) {
    char *end = strchr(line, '\n');
    next = end + 1; /* the text ends with a newline */
    *end = 0;
    if (strncmp(line, "key ", 4) == 0) ours = strcmp(line + 4, key) == 0;
    if (!ours && others) {
      hn_str_puts(others, line);
      hn_str_putc(others, '\n');
    }
    if (!ours || !mine || strncmp(line, "key ", 4) == 0) continue;
    if (!parse_step(line, timing, &step)) return hn_fail(error, HONE_ERROR_INPUT, "a line is not understood");
    if (!hn_tuned_put(mine, &step)) return hn_fail_memory(error, sizeof step, "tuned tactics");
  }
  return HONE_OK;
}

hone_status hn_tuned_read(hn_tuned *t, const char *path, hone_error *error) {
  hone_status status;
  char *body = read_body(path, &status, error);
  if (!body) return status;
  hn_tuned *fresh = another(t); /* all of it or nothing */
  status =
      fresh ? split_body(body, fresh->key, fresh, NULL, error) : hn_fail_memory(error, 0, "tuned tactics");
  for (size_t i = 0; status == HONE_OK && i < fresh->steps.len; i++)
    if (!hn_tuned_put(t, fresh->steps.ptr[i])) status = hn_fail_memory(error, 0, "tuned tactics");
  hn_tuned_destroy(fresh);
  hn_free(body);
  return status;
}

hone_status hn_tuned_write(hn_tuned *t, const char *path, hone_error *error) {
  hone_status status;
  hn_str text = {0}, others = {0};
  hn_tuned *all = NULL;
  if (hn_path_exists(path)) { /* a pipe would be waited for */
    int fd;
    uint64_t size;
    status = hn_file_open(path, NULL, HN_FILE_CACHE, &fd, &size, error);
    if (status != HONE_OK) {
      if (error) error->where[0] = 0; /* who calls names the file */
      return status;
    }
    close(fd);
  }
  char *body = read_body(path, &status, NULL);
  if (status == HONE_ERROR_MEMORY) return hn_fail_memory(error, 0, "tuned tactics");
  all = another(t);
  status = all ? HONE_OK : hn_fail_memory(error, 0, "tuned tactics");
  /* What cannot be used is written over. */
  if (status == HONE_OK && body && split_body(body, all->key, all, &others, NULL) != HONE_OK)
    hn_str_clear(&others);
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; status == HONE_OK && i < t->steps.len; i++)
    if (!hn_tuned_put(all, t->steps.ptr[i])) status = hn_fail_memory(error, 0, "tuned tactics");
  pthread_mutex_unlock(&t->lock);
  if (status != HONE_OK) goto done;
  if (others.len) hn_str_append(&text, others.ptr, others.len);
  hn_str_printf(&text, "key %s\n", all->key);
  for (size_t i = 0; i < all->steps.len; i++) format_step(all->steps.ptr[i], &text);
  hn_str_clear(&others);
  hn_str_printf(&others, MAGIC "%016llx\n", (unsigned long long)hn_hash(text.ptr, text.len, 0));
  hn_str_append(&others, text.ptr, text.len);
  if (text.failed || others.failed) {
    status = hn_fail_memory(error, text.len, "tuned tactics");
    goto done;
  }
  char folder[4096];
  const char *slash = strrchr(path, '/');
  if (slash && slash != path && (size_t)(slash - path) < sizeof folder) {
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = 0;
    status = hn_mkdirs(folder, error);
  }
  if (status == HONE_OK) status = hn_file_write(path, others.ptr, others.len, error);
  if (status != HONE_OK && error) error->where[0] = 0; /* as above */
done:
  hn_tuned_destroy(all);
  hn_str_free(&text);
  hn_str_free(&others);
  hn_free(body);
  return status;
}

/* The user's file; false when there is no folder for it. */
static bool default_path(char *buf, size_t size) {
  char folder[4000];
  if (!hn_cache_dir(folder, sizeof folder)) return false;
  int n = snprintf(buf, size, "%s/tactics.txt", folder);
  return n > 0 && (size_t)n < size;
}

hn_tuned *hn_tuned_open(const hn_backend *backend, const hn_device *device, const char *file,
                        hn_tuned_source *source) {
  hone_error error = {0};
  *source = (hn_tuned_source){0};
  hn_tuned *t = create();
  if (t) t->backend = backend, t->device = device;
  if (!file) file = getenv("HONE_TUNE_CACHE");
  if (!t || (file && strcmp(file, "off") == 0)) return t;
  if (file && *file)
    snprintf(source->path, sizeof source->path, "%s", file);
  else if (!default_path(source->path, sizeof source->path))
    source->path[0] = 0;
  if (source->path[0] && hn_tuned_read(t, source->path, &error) != HONE_OK)
    snprintf(source->warning, sizeof source->warning, "tuned tactics in %.120s are not used: %.100s",
             source->path, error.what);
  return t;
}
