/* COCO's boxes: one JSON document with images, annotations and categories. */
#include "runtime/dataset/set.h"

#include "base/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An id of the document, and what it is here. */
typedef struct known {
  json_int_t id;
  uint32_t at;
} known;
typedef HN_VEC(known) ids;

/* A box before it is known how many its picture has. */
typedef struct placed {
  uint32_t sample;
  hone_box box;
} placed;
typedef HN_VEC(placed) boxes;

static int by_id(const void *a, const void *b) {
  const known *x = a, *y = b;
  return x->id < y->id ? -1 : x->id > y->id;
}

static int by_sample(const void *a, const void *b) {
  const placed *x = a, *y = b;
  return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static const known *find(const ids *list, const json_t *id) {
  const known key = {.id = json_integer_value(id)};
  return json_is_integer(id) && list->len ? bsearch(&key, list->ptr, list->len, sizeof key, by_id) : NULL;
}

static hone_status bad(const char *path, const char *what, size_t i, hone_error *error) {
  hn_fail(error, HONE_ERROR_INPUT, "%s %zu is not as COCO has them", what, i);
  hn_error_where(error, "%s", path);
  return HONE_ERROR_INPUT;
}

static void sort_ids(ids *list) {
  if (list->len) qsort(list->ptr, list->len, sizeof *list->ptr, by_id);
}

static hone_status read_images(hone_dataset *set, const char *path, const char *folder, const json_t *list,
                               ids *images, hone_error *error) {
  size_t i;
  json_t *image;
  json_array_foreach(list, i, image) {
    const json_t *id = json_object_get(image, "id");
    const char *name = json_string_value(json_object_get(image, "file_name"));
    if (!json_is_integer(id) || !name) return bad(path, "image", i, error);
    if (!hn_vec_push(images, (known){json_integer_value(id), (uint32_t)set->samples.len}) ||
        !hn_set_sample_add(set, hn_set_join(set, folder, name), 0, 0))
      return hn_set_memory(error);
  }
  sort_ids(images);
  return HONE_OK;
}

/* In the order of their ids, as networks trained on them number them; or as the file of names does. */
static hone_status read_categories(hone_dataset *set, const char *path, const json_t *list, ids *categories,
                                   hone_error *error) {
  size_t i;
  json_t *category;
  hone_status status = HONE_OK;
  json_array_foreach(list, i, category) {
    const json_t *id = json_object_get(category, "id");
    if (!json_is_integer(id) || !json_string_value(json_object_get(category, "name")))
      return bad(path, "category", i, error);
    if (!hn_vec_push(categories, (known){json_integer_value(id), (uint32_t)i})) return hn_set_memory(error);
  }
  sort_ids(categories);
  size_t kept = 0;
  for (i = 0; i < categories->len; i++) {
    known *c = &categories->ptr[i];
    const char *name = json_string_value(json_object_get(json_array_get(list, c->at), "name"));
    bool good = set->named || hn_set_class_append(set, name);
    if (!set->named) c->at = (uint32_t)set->classes.len - 1;
    const bool there = !set->named || hn_set_class(set, name, &c->at, &status);
    if (good && !there)
      good = status == HONE_OK && hn_set_leave(set, "%s: the file of names has no '%s'", path, name);
    if (!good) return hn_set_memory(error);
    if (there) categories->ptr[kept++] = *c;
  }
  categories->len = kept;
  return HONE_OK;
}

/* [x, y, width, height] in pixels. */
static bool box_of(const json_t *list, hone_box *out) {
  double v[4];
  for (size_t i = 0; i < 4; i++) {
    const json_t *number = json_array_get(list, i);
    if (!json_is_number(number)) return false;
    v[i] = json_number_value(number);
  }
  out->x0 = v[0], out->y0 = v[1], out->x1 = v[0] + v[2], out->y1 = v[1] + v[3];
  return json_array_size(list) == 4 && v[2] >= 0 && v[3] >= 0 && isfinite(out->x1) && isfinite(out->y1);
}

static hone_status read_annotations(hone_dataset *set, const char *path, const json_t *list,
                                    const ids *images, const ids *categories, boxes *out, hone_error *error) {
  size_t i;
  json_t *a;
  json_array_foreach(list, i, a) {
    placed p = {0};
    const known *image = find(images, json_object_get(a, "image_id")),
                *category = find(categories, json_object_get(a, "category_id"));
    const bool good = image && category && box_of(json_object_get(a, "bbox"), &p.box);
    if (good) {
      p.sample = image->at;
      p.box.cls = category->at;
      p.box.crowd = json_integer_value(json_object_get(a, "iscrowd")) == 1;
    }
    if (good ? !hn_vec_push(out, p)
             : !hn_set_leave(set, "%s: annotation %zu: no such image or category, or no box", path, i))
      return hn_set_memory(error);
  }
  if (out->len) qsort(out->ptr, out->len, sizeof *out->ptr, by_sample);
  for (i = 0; i < out->len; i++) {
    hn_set_sample *s = &set->samples.ptr[out->ptr[i].sample];
    if (!s->n_boxes++) s->first_box = (uint32_t)i;
    if (!hn_vec_push(&set->boxes, out->ptr[i].box)) return hn_set_memory(error);
  }
  return HONE_OK;
}

static hone_status read_document(hone_dataset *set, const char *path, const char *folder, const json_t *root,
                                 hone_error *error) {
  const json_t *images = json_object_get(root, "images"), *annotations = json_object_get(root, "annotations"),
               *categories = json_object_get(root, "categories");
  ids image_ids = {0}, category_ids = {0};
  boxes found = {0};
  if (!json_is_array(images) || !json_is_array(annotations) || !json_is_array(categories)) {
    hn_fail(error, HONE_ERROR_INPUT, "not a COCO document");
    hn_error_where(error, "%s", path);
    hn_error_expected(error, "images, annotations and categories");
    return HONE_ERROR_INPUT;
  }
  hone_status status = read_images(set, path, folder, images, &image_ids, error);
  if (status == HONE_OK) status = read_categories(set, path, categories, &category_ids, error);
  if (status == HONE_OK)
    status = read_annotations(set, path, annotations, &image_ids, &category_ids, &found, error);
  hn_vec_free(&image_ids);
  hn_vec_free(&category_ids);
  hn_vec_free(&found);
  set->kind = "COCO boxes";
  set->truth = HONE_TRUTH_BOXES;
  return status;
}

hone_status hn_set_read_coco(hone_dataset *set, const char *path, const char *folder, hone_error *error) {
  hn_file file = {0};
  json_error_t where;
  hone_status status = hn_file_map(path, NULL, HN_FILE_DATA, &file, error);
  if (status != HONE_OK) {
    hn_error_where(error, "%s", path);
    return status;
  }
  json_t *root = hn_json_load((const char *)file.data, file.size, 0, &where);
  hn_file_unmap(&file);
  if (!root) {
    hn_fail(error, HONE_ERROR_INPUT, "no JSON: %.100s", where.text);
    hn_error_where(error, "%s:%d", path, where.line);
    return HONE_ERROR_INPUT;
  }
  status = read_document(set, path, folder, root, error);
  json_decref(root);
  return status;
}
