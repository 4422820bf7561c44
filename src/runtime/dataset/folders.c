/* Pictures in folders that are called by their class, files of such folders, and pictures without a class. */
#include "runtime/dataset/set.h"

#include <stdlib.h>
#include <string.h>

/* A folder or a file of one class; both texts are the set's. */
typedef struct found {
  const char *cls, *path;
} found;
typedef HN_VEC(found) finds;

static void names_free(char **names, size_t n) {
  for (size_t i = 0; i < n; i++) hn_free(names[i]);
  hn_free(names);
}

/* The inputs right in a folder, all of one class. */
static hone_status add_folder(hone_dataset *set, const char *folder, uint32_t cls, hone_error *error) {
  char **names;
  size_t n, added = 0;
  hone_status status = hn_folder_list(folder, &names, &n, error);
  for (size_t i = 0; status == HONE_OK && i < n; i++) {
    if (!hn_set_is_input(names[i])) continue;
    added++;
    if (!hn_set_sample_add(set, hn_set_join(set, folder, names[i]), 0, cls)) status = hn_set_memory(error);
  }
  names_free(names, n);
  if (status == HONE_OK && !added && !hn_set_leave(set, "%s: no pictures or arrays in it", folder))
    status = hn_set_memory(error);
  return status;
}

static int by_class(const void *a, const void *b) {
  return strcmp(((const found *)a)->cls, ((const found *)b)->cls);
}

/* Classes get their numbers in the order of their names; names that are all numbers are these. */
static hone_status number(hone_dataset *set, const finds *all, hone_error *error) {
  uint32_t cls;
  hone_status status = HONE_OK;
  bool numbers = true;
  for (size_t i = 0; i < all->len; i++) numbers = numbers && hn_set_number(all->ptr[i].cls, &cls);
  if (numbers || set->named) return HONE_OK;
  finds sorted = {0};
  for (size_t i = 0; status == HONE_OK && i < all->len; i++)
    if (!hn_vec_push(&sorted, all->ptr[i])) status = HONE_ERROR_MEMORY;
  if (status == HONE_OK) qsort(sorted.ptr, sorted.len, sizeof *sorted.ptr, by_class);
  for (size_t i = 0; status == HONE_OK && i < sorted.len; i++)
    if (!hn_set_class_add(set, sorted.ptr[i].cls)) status = HONE_ERROR_MEMORY;
  hn_vec_free(&sorted);
  return status == HONE_OK ? status : hn_set_memory(error);
}

static hone_status add_all(hone_dataset *set, const finds *all, hone_error *error) {
  hone_status status = number(set, all, error);
  for (size_t i = 0; status == HONE_OK && i < all->len; i++) {
    const found *f = &all->ptr[i];
    uint32_t cls;
    const bool known = hn_set_class(set, f->cls, &cls, &status);
    bool good = status == HONE_OK;
    if (good && !known)
      good = hn_set_leave(set, "%s: the file of names has no class '%s'", f->path, f->cls);
    else if (good && !hn_is_folder(f->path))
      good = hn_set_sample_add(set, f->path, 0, cls);
    else if (good)
      status = add_folder(set, f->path, cls, error);
    if (!good) status = hn_set_memory(error);
  }
  set->kind = "class folders";
  set->truth = HONE_TRUTH_CLASS;
  return status;
}

hone_status hn_set_read_folders(hone_dataset *set, const char *folder, hone_error *error) {
  char **names;
  size_t n;
  finds all = {0};
  hone_status status = hn_folder_list(folder, &names, &n, error);
  for (size_t i = 0; status == HONE_OK && i < n; i++) {
    const char *path = hn_set_join(set, folder, names[i]), *own = hn_arena_strdup(&set->arena, names[i]);
    if (!path || !own || (hn_is_folder(path) && !hn_vec_push(&all, (found){own, path})))
      status = hn_set_memory(error);
  }
  names_free(names, n);
  if (status == HONE_OK) status = add_all(set, &all, error);
  hn_vec_free(&all);
  return status;
}

/* "cat" of data/cat/1.jpg, and of the folder data/cat/. */
static char *class_of(hone_dataset *set, const char *path) {
  size_t end = strlen(path);
  const bool folder = hn_is_folder(path);
  while (!folder && end && path[end - 1] != '/') end--;
  while (end > 1 && path[end - 1] == '/') end--;
  size_t begin = end;
  while (begin && path[begin - 1] != '/') begin--;
  return begin == end ? hn_arena_strdup(&set->arena, ".")
                      : hn_arena_strndup(&set->arena, path + begin, end - begin);
}

hone_status hn_set_read_paths(hone_dataset *set, const hone_dataset_options *o, hone_error *error) {
  finds all = {0};
  hone_status status = HONE_OK;
  for (uint32_t i = 0; status == HONE_OK && i < o->n_paths; i++) {
    const char *path = hn_arena_strdup(&set->arena, o->paths[i]);
    const char *cls = path ? class_of(set, path) : NULL;
    bool good = cls != NULL;
    if (good && !hn_is_folder(path) && !hn_set_is_input(path))
      good = hn_set_leave(set, "%s: not a picture or array by its ending", path);
    else if (good)
      good = hn_vec_push(&all, (found){cls, path});
    if (!good) status = hn_set_memory(error);
  }
  if (status == HONE_OK) status = add_all(set, &all, error);
  hn_vec_free(&all);
  return status;
}

hone_status hn_set_read_plain(hone_dataset *set, const char *folder, hone_error *error) {
  set->kind = "pictures";
  set->truth = HONE_TRUTH_NONE;
  return add_folder(set, folder, 0, error);
}
