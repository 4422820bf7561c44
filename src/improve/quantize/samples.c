/* The calibration set, one sample in memory at a time: a file of a folder, a row of arrays, one of labelled
 * data or of a file of many pictures, or random. */
#include "improve/quantize/quantize.h"

#include "base/error.h"
#include "base/os.h"
#include "runtime/data/data.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { RANDOM_SAMPLES = 16 };

struct hn_quantize_samples {
  enum { RANDOM, FOLDER, STACK, SET } kind;
  const hone_model *bound;
  const hn_plan *plan;
  const hone_preprocess *preprocess;
  const char *path;
  const hone_dataset *set;
  hone_dataset
      *own;       /* SET: opened from `path`. FOLDER: which classes its files are of; NULL: none are told */
  hn_map numbers; /* FOLDER: path -> number in `own` + 1 */
  bool picture;   /* the last sample was one */
  uint64_t seed;
  uint32_t first, every; /* the part of what is there that is taken */
  uint32_t n, of;        /* samples that are wanted, of so many that the part has */
  uint32_t n_in;
  hn_feed *feeds;       /* [n_in] */
  hn_array **stack;     /* [n_in] STACK: read row by row, or */
  hone_data *whole;     /* [n_in] as a whole, where its elements lie otherwise (big-endian, columns first) */
  void **row;           /* [n_in] a row as the file has it */
  hn_arena arena;       /* a row converted */
  HN_VEC(char *) files; /* FOLDER: paths */
};

static bool ends_with(const char *name, const char *tail) {
  const size_t n = strlen(name), t = strlen(tail);
  return n > t && strcasecmp(name + n - t, tail) == 0;
}

static bool is_sample(const char *name) {
  static const char *const tails[] = {".npy", ".npz", ".jpg", ".jpeg", ".png", ".pb", NULL};
  for (const char *const *t = tails; *t; t++)
    if (ends_with(name, *t)) return true;
  return false;
}

/* How many of so many belong to the part. */
static uint32_t part_of(const hn_quantize_samples *s, uint64_t all) {
  const uint64_t n = all > s->first ? (all - s->first + s->every - 1) / s->every : 0;
  return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* ---- data sets */

static hone_status open_set(hn_quantize_samples *s, hone_error *error) {
  s->kind = SET;
  s->of = part_of(s, hone_dataset_samples(s->set));
  if (s->n_in == 1) return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "labelled data fills one input, and the model has %u", s->n_in);
  hn_error_expected(error, "--calib with .npz files that have an entry for each input");
  return HONE_ERROR_INPUT;
}

/* A file of many pictures, or the folder that holds one. */
static hone_status open_packed(hn_quantize_samples *s, hone_error *error) {
  const hone_status status = hone_dataset_open(
      &(hone_dataset_options){.paths = &s->path, .n_paths = 1, .unlabelled = true}, &s->own, error);
  s->set = s->own;
  return status == HONE_OK ? open_set(s, error) : status;
}

/* ---- folders */

/* Files of the folder, and of those in it (labelled sets have one a class). */
static hone_status list(hn_quantize_samples *s, const char *path, int depth, hone_error *error) {
  char **names, buf[4096];
  size_t n;
  const size_t end = strlen(path);
  hone_status status = hn_folder_list(path, &names, &n, error);
  for (size_t i = 0; i < n; i++) {
    const int len =
        snprintf(buf, sizeof buf, "%s%s%s", path, end && path[end - 1] == '/' ? "" : "/", names[i]);
    if (status == HONE_OK && len > 0 && (size_t)len < sizeof buf) {
      if (hn_is_folder(buf)) {
        if (depth > 0) status = list(s, buf, depth - 1, error);
      } else if (is_sample(buf)) {
        char *copy = hn_strdup(buf);
        if (!copy || !hn_vec_push(&s->files, copy)) {
          hn_free(copy);
          status = hn_fail_memory(error, sizeof buf, "the list of samples");
        }
      }
    }
    hn_free(names[i]);
  }
  hn_free(names);
  return status;
}

/* Which class each file is of, where folders or labels beside them say so. What is no labelled data has none.
 */
static hone_status find_classes(hn_quantize_samples *s, hone_error *error) {
  hone_error none = {0};
  const hone_status status = hone_dataset_open(
      &(hone_dataset_options){.paths = &s->path, .n_paths = 1, .unlabelled = true}, &s->own, &none);
  if (status == HONE_ERROR_MEMORY) return hn_fail_memory(error, 0, "the classes of samples");
  hone_sample sample;
  for (uint64_t i = 0; status == HONE_OK && hone_dataset_sample(s->own, i, &sample); i++)
    if (!hn_map_set(&s->numbers, sample.name, (void *)(uintptr_t)(i + 1))) /* NOLINT: a number */
      return hn_fail_memory(error, 0, "the classes of samples");
  return HONE_OK;
}

/* A file of many pictures in a folder of nothing else. */
static hone_status holds_packed(const char *path, bool *any, hone_error *error) {
  char **names, buf[4096];
  size_t n;
  const hone_status status = hn_folder_list(path, &names, &n, error);
  for (size_t i = 0; i < n; i++) {
    const int len = snprintf(buf, sizeof buf, "%s/%s", path, names[i]);
    if (!*any && len > 0 && (size_t)len < sizeof buf) *any = !hn_is_folder(buf) && hone_dataset_packed(buf);
    hn_free(names[i]);
  }
  hn_free(names);
  return status;
}

static hone_status open_folder(hn_quantize_samples *s, hone_error *error) {
  bool packed = false;
  s->kind = FOLDER;
  hone_status status = list(s, s->path, 1, error);
  if (status != HONE_OK) return status;
  s->of = part_of(s, s->files.len);
  if (s->files.len) return find_classes(s, error);
  status = holds_packed(s->path, &packed, error);
  if (status != HONE_OK) return status;
  if (packed) return open_packed(s, error);
  hn_fail(error, HONE_ERROR_INPUT, "the folder holds no samples");
  hn_error_where(error, "%s", s->path);
  hn_error_expected(error, ".npy, .npz, .jpg or .png files, a sample each, or MNIST's or CIFAR's files");
  return HONE_ERROR_INPUT;
}

/* Any number of the files of the part, evenly from all of them, and in an order in which classes alternate: a
 * stride near the golden ratio that shares no factor with their number. */
static uint32_t file_of(const hn_quantize_samples *s, uint32_t i) {
  uint32_t stride = (uint32_t)((double)s->of * 0.6180339887), a, b;
  if (s->of < 3) return s->first + i * s->every;
  for (stride += stride == 0;; stride++) {
    for (a = s->of, b = stride; b;) {
      const uint32_t r = a % b;
      a = b, b = r;
    }
    if (a == 1) break;
  }
  return s->first + (uint32_t)((uint64_t)i * stride % s->of) * s->every;
}

static hone_status read_file(hn_quantize_samples *s, uint32_t i, hone_error *error) {
  const char *path = s->files.ptr[file_of(s, i)];
  if (s->n_in > 1 && !ends_with(path, ".npz")) {
    hn_fail(error, HONE_ERROR_INPUT, "one array is no sample of a model with %u inputs", s->n_in);
    hn_error_where(error, "%s", path);
    hn_error_expected(error, ".npz files with an entry for each input");
    return HONE_ERROR_INPUT;
  }
  for (uint32_t k = 0; k < s->n_in; k++) {
    const hn_value *in = s->plan->inputs[k];
    hone_data_free(&s->feeds[k].data);
    hone_picture_map map = {0};
    hone_status status =
        hn_data_read(path, in->name, &in->desc, s->preprocess, &s->feeds[k].data, &map, error);
    if (status != HONE_OK) return status;
    s->picture = map.width > 0;
  }
  return HONE_OK;
}

/* ---- arrays of samples */

/* [S * B, ...] for an input [B, ...], or [S, B, ...]; 0: neither. */
static int64_t rows_of(const hone_tensor_desc *have, const hone_tensor_desc *want) {
  const bool apart = have->rank == want->rank + 1;
  if (!apart && (have->rank != want->rank || want->rank == 0)) return 0;
  for (int32_t k = apart ? 0 : 1; k < want->rank; k++)
    if (have->dim[k + apart] != want->dim[k]) return 0;
  return apart ? have->dim[0] : want->dim[0] > 0 ? have->dim[0] / want->dim[0] : 0;
}

static const hone_tensor_desc *have(const hn_quantize_samples *s, uint32_t k) {
  return s->stack[k] ? hn_array_desc(s->stack[k]) : &s->whole[k].tensor.desc;
}

static hone_status open_array(hn_quantize_samples *s, uint32_t k, hone_error *error) {
  const hn_value *in = s->plan->inputs[k];
  hone_tensor_desc any = hone_desc(in->desc.dtype, 0, NULL);
  any.rank = -1;
  hone_status status = hn_array_open(s->path, in->name, &s->stack[k], error);
  if (status != HONE_OK) return status;
  if (!s->stack[k]) return hone_data_load(s->path, in->name, &any, s->preprocess, &s->whole[k], error);
  s->row[k] = hn_malloc((size_t)hone_desc_count(&in->desc) * hone_dtype_size(have(s, k)->dtype) + 1);
  return s->row[k] ? HONE_OK : hn_fail_memory(error, (size_t)hone_desc_count(&in->desc), "a sample");
}

static hone_status open_stack(hn_quantize_samples *s, hone_error *error) {
  int64_t all = 0;
  for (uint32_t k = 0; k < s->n_in; k++) {
    const hn_value *in = s->plan->inputs[k];
    hone_status status = open_array(s, k, error);
    if (status != HONE_OK) return status;
    const int64_t rows = rows_of(have(s, k), &in->desc);
    if (rows < 1 || (k && rows != all)) {
      char a[128], b[128];
      hn_fail(error, HONE_ERROR_INPUT,
              rows < 1 ? "the array for input '%s' holds no samples of its shape"
                       : "the array for input '%s' has another number of samples",
              in->name);
      hn_error_where(error, "%s", s->path);
      hn_error_got(error, "%s", hone_desc_format(have(s, k), a, sizeof a));
      if (rows < 1)
        hn_error_expected(error, "%s behind a leading axis", hone_desc_format(&in->desc, b, sizeof b));
      else
        hn_error_expected(error, "%lld samples, as of '%s'", (long long)all, s->plan->inputs[0]->name);
      return HONE_ERROR_INPUT;
    }
    all = rows;
  }
  s->of = part_of(s, (uint64_t)all);
  return HONE_OK;
}

/* Any number of the rows of the part, evenly from all of them, forwards. */
static hone_status read_row(hn_quantize_samples *s, uint32_t i, hone_error *error) {
  const uint64_t at = s->first + (uint64_t)i * s->of / s->n * s->every;
  hone_status status = HONE_OK;
  hn_arena_free(&s->arena);
  for (uint32_t k = 0; k < s->n_in && status == HONE_OK; k++) {
    const hone_tensor_desc *want = &s->plan->inputs[k]->desc;
    const hone_dtype dtype = have(s, k)->dtype;
    const size_t bytes = (size_t)hone_desc_count(want) * hone_dtype_size(dtype);
    hone_tensor raw = {hone_desc(dtype, want->rank, want->dim), s->row[k]};
    if (s->stack[k])
      status = hn_array_read(s->stack[k], at * bytes, s->row[k], bytes, error);
    else
      raw.data = (char *)s->whole[k].tensor.data + at * bytes;
    if (status == HONE_OK)
      status = hn_tensor_convert(&raw, want->dtype, &s->arena, &s->feeds[k].data.tensor, error);
    if (status != HONE_OK && error && !error->where[0]) hn_error_where(error, "%s", s->path);
  }
  return status;
}

/* ---- */

static hone_status read_random(hn_quantize_samples *s, uint32_t i, hone_error *error) {
  i = s->first + i * s->every;
  for (uint32_t k = 0; k < s->n_in; k++) {
    const hn_value *in = s->plan->inputs[k];
    hone_data_free(&s->feeds[k].data);
    hone_status status = hone_data_for_input(s->bound, k, &in->desc, s->seed + i, &s->feeds[k].data, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

/* ---- labelled data */

/* One sample in all rows of a batch. */
static hone_status read_labelled(hn_quantize_samples *s, uint32_t i, hone_error *error) {
  const hone_tensor_desc *want = &s->plan->inputs[0]->desc;
  hone_tensor_desc one = *want;
  hone_data sample = {0};
  hone_picture_map map = {0};
  hone_data *to = &s->feeds[0].data;
  const int64_t rows = want->rank >= 2 && want->rank != 3 ? want->dim[0] : 1;
  if (rows > 1) {
    int64_t dims[HONE_MAX_RANK];
    memcpy(dims, want->dim, sizeof dims);
    dims[0] = 1;
    one = hone_desc(want->dtype, want->rank, dims);
  }
  hone_data_free(to);
  hone_status status =
      hone_dataset_load(s->set, file_of(s, i), &one, s->preprocess, rows > 1 ? &sample : to, &map, error);
  s->picture = map.width > 0;
  if (status != HONE_OK || rows <= 1) return status;
  const size_t bytes = (size_t)hone_desc_bytes(&one);
  status = hone_data_random(s->plan->inputs[0]->name, want, -1, 1, to, error); /* its memory */
  for (int64_t k = 0; status == HONE_OK && k < rows; k++)
    memcpy((char *)to->tensor.data + (size_t)k * bytes, sample.tensor.data, bytes);
  hone_data_free(&sample);
  return status;
}

static hone_status open_by_kind(hn_quantize_samples *s, hone_error *error) {
  if (!s->path) return open_set(s, error);
  if (strcmp(s->path, "random") == 0 && !hn_path_exists(s->path)) {
    s->kind = RANDOM;
    s->of = UINT32_MAX;
    if (!s->n) s->n = RANDOM_SAMPLES;
    return HONE_OK;
  }
  if (hn_is_folder(s->path)) return open_folder(s, error);
  if (hone_dataset_packed(s->path)) return open_packed(s, error);
  s->kind = STACK;
  return open_stack(s, error);
}

hone_status hn_quantize_samples_open(const hone_quantize_options *o, const hone_model *bound,
                                     const hn_plan *plan, hn_quantize_samples **out, hone_error *error) {
  hn_quantize_samples *s = *out = hn_calloc(1, sizeof *s);
  if (!s) return hn_fail_memory(error, sizeof *s, "samples");
  *s = (hn_quantize_samples){.bound = bound,
                             .plan = plan,
                             .preprocess = o->preprocess,
                             .path = o->calib,
                             .set = o->set,
                             .seed = o->seed ? o->seed : 1,
                             .first = o->first,
                             .every = o->every ? o->every : 1,
                             .n = o->samples,
                             .n_in = plan->n_inputs};
  s->feeds = hn_calloc(s->n_in + 1, sizeof *s->feeds);
  s->stack = hn_calloc(s->n_in + 1, sizeof *s->stack);
  s->whole = hn_calloc(s->n_in + 1, sizeof *s->whole);
  s->row = hn_calloc(s->n_in + 1, sizeof *s->row);
  if (!s->feeds || !s->stack || !s->whole || !s->row)
    return hn_fail_memory(error, s->n_in * sizeof *s->feeds, "samples");
  for (uint32_t k = 0; k < s->n_in; k++) s->feeds[k].name = plan->inputs[k]->name;
  hone_status status = open_by_kind(s, error);
  if (status == HONE_OK && (!s->n || s->n > s->of)) s->n = s->of;
  return status;
}

/* Field by field: what lies between them is anything. */
static uint64_t mark_preprocess(const hone_preprocess *p, uint64_t h) {
  const int64_t whole[] = {p->resize_h, p->resize_w, p->crop_h,    p->crop_w, p->fit,
                           p->pad,      p->bgr,      p->normalise, p->pixels};
  const float real[] = {p->scale, p->mean[0], p->mean[1], p->mean[2], p->std[0], p->std[1], p->std[2]};
  return hn_hash(real, sizeof real, hn_hash(whole, sizeof whole, h));
}

uint64_t hn_quantize_samples_mark(const hn_quantize_samples *s) {
  const uint32_t part[] = {s->n, s->first, s->every};
  uint64_t h = hn_hash(part, sizeof part, 0), size;
  int64_t changed;
  if (s->path) h = hn_hash(s->path, strlen(s->path), h);
  if (s->preprocess) h = mark_preprocess(s->preprocess, h);
  if (s->kind == RANDOM) h = hn_hash(&s->seed, sizeof s->seed, h);
  for (uint32_t i = 0; s->kind != RANDOM && i < (s->kind == STACK ? 1 : s->n); i++) {
    hone_sample sample = {0};
    if (s->kind == SET) hone_dataset_sample(s->set, file_of(s, i), &sample);
    const char *path = s->kind == FOLDER ? s->files.ptr[file_of(s, i)]
                       : s->kind == SET  ? sample.name
                                         : s->path;
    if (!path || !hn_file_stamp(path, &size, &changed)) continue;
    h = hn_hash(path, strlen(path), h);
    h = hn_hash(&size, sizeof size, h);
    h = hn_hash(&changed, sizeof changed, h);
  }
  return h ? h : 1;
}

const hone_dataset *hn_quantize_samples_classes(const hn_quantize_samples *s) {
  const hone_dataset *set = s->kind == SET ? s->set : s->kind == FOLDER ? s->own : NULL;
  return set && hone_dataset_truth(set) != HONE_TRUTH_NONE ? set : NULL;
}

bool hn_quantize_samples_labelled(const hn_quantize_samples *s, uint32_t i, hone_sample *out) {
  const hone_dataset *set = hn_quantize_samples_classes(s);
  uint64_t number = set ? file_of(s, i) : 0;
  if (set && s->kind == FOLDER) {
    const uintptr_t known = (uintptr_t)hn_map_get(&s->numbers, s->files.ptr[number]);
    if (!known) return false;
    number = known - 1;
  }
  return set && hone_dataset_sample(set, number, out);
}

bool hn_quantize_samples_light(const hn_quantize_samples *s, double *mean, double *deviation) {
  return s->picture && s->n_in == 1 &&
         hn_picture_light(&s->feeds[0].data.tensor, s->preprocess, mean, deviation);
}

uint32_t hn_quantize_samples_count(const hn_quantize_samples *s) { return s->n; }

hone_status hn_quantize_samples_read(hn_quantize_samples *s, uint32_t i, const hn_feed **feeds,
                                     hone_error *error) {
  *feeds = s->feeds;
  if (s->kind == RANDOM) return read_random(s, i, error);
  if (s->kind == FOLDER) return read_file(s, i, error);
  if (s->kind == SET) return read_labelled(s, i, error);
  return read_row(s, i, error);
}

void hn_quantize_samples_close(hn_quantize_samples *s) {
  if (!s) return;
  for (uint32_t k = 0; s->feeds && k < s->n_in; k++)
    if (s->kind != STACK) hone_data_free(&s->feeds[k].data);
  for (uint32_t k = 0; s->stack && k < s->n_in; k++) hn_array_close(s->stack[k]);
  for (uint32_t k = 0; s->whole && k < s->n_in; k++) hone_data_free(&s->whole[k]);
  for (uint32_t k = 0; s->row && k < s->n_in; k++) hn_free(s->row[k]);
  hn_arena_free(&s->arena);
  hn_map_free(&s->numbers);
  hone_dataset_close(s->own);
  for (size_t i = 0; i < s->files.len; i++) hn_free(s->files.ptr[i]);
  hn_vec_free(&s->files);
  hn_free(s->feeds);
  hn_free(s->stack);
  hn_free(s->whole);
  hn_free((void *)s->row);
  hn_free(s);
}
