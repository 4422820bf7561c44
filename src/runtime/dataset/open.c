/* Which form a data set has, by what lies there. */
#include "runtime/dataset/set.h"

#include <string.h>
#include <strings.h>

/* What lies right in a folder. */
typedef struct contents {
  size_t inputs, folders, packed;
  bool boxes;                      /* a text of boxes belongs to a picture */
  const char *pictures;            /* a folder "images" beside a folder "labels" */
  const char *first_packed, *list; /* labels.txt; of the set */
} contents;

static hone_status look(hone_dataset *set, const char *folder, contents *out, hone_error *error) {
  char **names;
  size_t n;
  bool labels = false;
  *out = (contents){0};
  hone_status status = hn_folder_list(folder, &names, &n, error);
  for (size_t i = 0; i < n; i++) {
    char *path = status == HONE_OK ? hn_set_join(set, folder, names[i]) : NULL;
    if (status == HONE_OK && !path) status = hn_set_memory(error);
    if (path && hn_is_folder(path)) {
      out->folders++;
      if (strcmp(names[i], "images") == 0) out->pictures = path;
      labels = labels || strcmp(names[i], "labels") == 0;
    } else if (path && hn_set_is_input(names[i])) {
      out->inputs++;
      out->boxes = out->boxes || hn_set_has_boxes(set, path);
    } else if (path && strcmp(names[i], "labels.txt") == 0) {
      out->list = path;
    } else if (path && hn_set_is_packed(path)) {
      if (!out->packed++) out->first_packed = path;
    }
    hn_free(names[i]);
  }
  hn_free(names);
  if (!labels) out->pictures = NULL;
  return status;
}

static bool is_json(const char *path) {
  const size_t n = path ? strlen(path) : 0;
  return n > 5 && strcasecmp(path + n - 5, ".json") == 0;
}

static hone_status nothing(const char *path, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "no data set that hone knows");
  hn_error_where(error, "%s", path);
  hn_error_expected(error, "folders called by their class, pictures with a list of labels or with boxes, "
                           "MNIST's or CIFAR's files");
  return HONE_ERROR_INPUT;
}

static hone_status several(const char *path, const contents *c, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "%zu files of packed pictures", c->packed);
  hn_error_where(error, "%s", path);
  hn_error_hint(error, "name one of them, such as %.200s", c->first_packed);
  return HONE_ERROR_INPUT;
}

static hone_status open_folder(hone_dataset *set, const char *folder, const char *labels, hone_error *error) {
  contents c;
  bool list = false;
  hone_status status = look(set, folder, &c, error);
  if (status != HONE_OK) return status;
  if (c.packed == 1 && !c.inputs) return hn_set_read_packed(set, c.first_packed, labels, error);
  if (c.packed > 1 && !c.inputs) return several(folder, &c, error);
  if (is_json(labels)) return hn_set_read_coco(set, labels, folder, error);
  if (labels) status = hn_set_is_list(labels, folder, &list, error);
  if (status != HONE_OK) return status;
  if (labels && !list) { /* then it names the classes */
    status = hn_set_names(set, labels, error);
    labels = NULL;
  }
  if (status != HONE_OK) return status;
  if (!labels && c.inputs) labels = c.list;
  if (labels) return hn_set_read_list(set, labels, folder, error);
  if (c.boxes) return hn_set_read_yolo(set, folder, error);
  if (c.pictures && !c.inputs) return hn_set_read_yolo(set, c.pictures, error);
  if (c.inputs) return hn_set_read_plain(set, folder, error);
  return c.folders ? hn_set_read_folders(set, folder, error) : nothing(folder, error);
}

static hone_status open_any(hone_dataset *set, const hone_dataset_options *o, hone_error *error) {
  hone_status status = o->names ? hn_set_names(set, o->names, error) : HONE_OK;
  if (status != HONE_OK) return status;
  const char *path = o->paths[0];
  if (o->n_paths == 1 && hn_is_folder(path)) return open_folder(set, path, o->labels, error);
  if (o->n_paths == 1 && hn_set_is_packed(path)) return hn_set_read_packed(set, path, o->labels, error);
  if (!hn_path_exists(path)) {
    hn_fail(error, HONE_ERROR_INPUT, "there is no such file or folder");
    hn_error_where(error, "%s", path);
    return HONE_ERROR_INPUT;
  }
  if (o->labels && !o->names) status = hn_set_names(set, o->labels, error);
  return status == HONE_OK ? hn_set_read_paths(set, o, error) : status;
}

static hone_status check_options(const hone_dataset_options *o, hone_dataset **out, hone_error *error) {
  if (!o || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_dataset_open: options and out may not be NULL");
  *out = NULL;
  if (!o->n_paths || !o->paths) return hn_fail(error, HONE_ERROR_USAGE, "hone_dataset_open: no paths");
  for (uint32_t i = 0; i < o->n_paths; i++)
    if (!o->paths[i]) return hn_fail(error, HONE_ERROR_USAGE, "hone_dataset_open: path %u is NULL", i);
  return HONE_OK;
}

hone_status hone_dataset_open(const hone_dataset_options *o, hone_dataset **out, hone_error *error) {
  hone_status status = check_options(o, out, error);
  if (status != HONE_OK) return status;
  const uint64_t lost = hn_mem_lost();
  hone_dataset *set = hn_calloc(1, sizeof *set);
  if (!set) return hn_set_memory(error);
  set->unlabelled = o->unlabelled;
  status = hn_settle(open_any(set, o, error), lost, error);
  if (status == HONE_OK && !set->samples.len) status = nothing(o->paths[0], error);
  if (status == HONE_OK)
    *out = set;
  else
    hone_dataset_close(set);
  return status;
}

void hone_dataset_close(hone_dataset *set) {
  if (!set) return;
  hn_free(set->packed.data);
  hn_map_free(&set->numbers);
  hn_vec_free(&set->samples);
  hn_vec_free(&set->classes);
  hn_vec_free(&set->boxes);
  hn_vec_free(&set->problems);
  hn_arena_free(&set->arena);
  hn_free(set);
}

bool hone_dataset_packed(const char *path) { return path && hn_set_is_packed(path); }

uint64_t hone_dataset_samples(const hone_dataset *set) { return set ? set->samples.len : 0; }
hone_truth hone_dataset_truth(const hone_dataset *set) { return set ? set->truth : HONE_TRUTH_NONE; }
const char *hone_dataset_kind(const hone_dataset *set) { return set ? set->kind : ""; }
uint32_t hone_dataset_classes(const hone_dataset *set) { return set ? (uint32_t)set->classes.len : 0; }

const char *hone_dataset_class(const hone_dataset *set, uint32_t i) {
  return set && i < set->classes.len ? set->classes.ptr[i] : NULL;
}

const char *hone_dataset_problem(const hone_dataset *set, uint64_t i) {
  return set && i < set->problems.len ? set->problems.ptr[i] : NULL;
}

bool hone_dataset_sample(const hone_dataset *set, uint64_t i, hone_sample *out) {
  if (!set || !out || i >= set->samples.len) return false;
  const hn_set_sample *s = &set->samples.ptr[i];
  *out = (hone_sample){s->path,    s->index,     s->cls, s->n_boxes ? set->boxes.ptr + s->first_box : NULL,
                       s->n_boxes, set->relative};
  return true;
}
