/* A data set while it is being read, and what its readers share. Inside of runtime/dataset only. */
#ifndef HN_RUNTIME_DATASET_SET_H
#define HN_RUNTIME_DATASET_SET_H

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/data/data.h"

#include <hone/dataset.h>

typedef struct hn_set_sample {
  const char *path;
  uint64_t index;
  uint32_t cls, first_box, n_boxes;
} hn_set_sample;

/* Pictures of one size that lie in one file, unpacked. */
typedef struct hn_packed {
  uint8_t *data;                 /* NULL: every sample is a file; hn_free */
  uint64_t first, pitch;         /* bytes before the first picture's pixels, from one picture to the next */
  int64_t width, height, planes; /* planes: 1, or 3, one after the other */
} hn_packed;

struct hone_dataset {
  hn_arena arena; /* all names */
  const char *kind;
  hone_truth truth;
  bool relative;   /* boxes are parts of the picture */
  bool named;      /* the classes are those of a file of names: no others are taken */
  bool unlabelled; /* labels may be missing */
  HN_VEC(hn_set_sample) samples;
  HN_VEC(const char *) classes;
  HN_VEC(hone_box) boxes;
  HN_VEC(const char *) problems;
  hn_map numbers; /* name of a class -> number + 1 */
  hn_packed packed;
};

/* ---- set.c. What returns false is out of memory, unless it says otherwise. */

bool hn_set_sample_add(hone_dataset *set, const char *path, uint64_t index, uint32_t cls);
/* Leaves something out, with the reason. */
bool hn_set_leave(hone_dataset *set, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The number of a class by its name, or of its own number where there are such; a new one where the set has
 * no file of names. False: no such class. */
bool hn_set_class(hone_dataset *set, const char *name, uint32_t *cls, hone_status *status);
/* A class of this name, unless there is one. */
bool hn_set_class_add(hone_dataset *set, const char *name);
/* One more class, even when there is one of that name. */
bool hn_set_class_append(hone_dataset *set, const char *name);
/* Classes up to this number exist; new ones are called by it. */
bool hn_set_classes_upto(hone_dataset *set, uint64_t n);
/* A text with a class a line. */
hone_status hn_set_names(hone_dataset *set, const char *path, hone_error *error);
hone_status hn_set_memory(hone_error *error);
/* A picture or an array, by the ending of its name. */
bool hn_set_is_input(const char *name);
/* folder/name in the set's arena; NULL: no memory. */
char *hn_set_join(hone_dataset *set, const char *folder, const char *name);
/* A whole number and nothing else, below 2^31. */
bool hn_set_number(const char *text, uint32_t *out);

/* Lines of a text, without their ends and blanks around. */
typedef struct hn_lines {
  const char *at, *end;
  uint64_t number;
} hn_lines;
/* The next line that is not empty, in the arena; NULL: none, or no memory (*status). */
char *hn_lines_next(hn_lines *lines, hn_arena *arena, hone_status *status);

/* ---- readers, each for one form; the set is empty before */

hone_status hn_set_read_folders(hone_dataset *set, const char *folder, hone_error *error);
hone_status hn_set_read_paths(hone_dataset *set, const hone_dataset_options *o, hone_error *error);
/* Pictures right in the folder, without labels. */
hone_status hn_set_read_plain(hone_dataset *set, const char *folder, hone_error *error);
/* Lines "PATH CLASS"; *is: the first line names a file of the folder. */
hone_status hn_set_is_list(const char *labels, const char *folder, bool *is, hone_error *error);
hone_status hn_set_read_list(hone_dataset *set, const char *labels, const char *folder, hone_error *error);
/* Whether a text of boxes belongs to the picture. */
bool hn_set_has_boxes(hone_dataset *set, const char *picture);
hone_status hn_set_read_yolo(hone_dataset *set, const char *folder, hone_error *error);
hone_status hn_set_read_coco(hone_dataset *set, const char *path, const char *folder, hone_error *error);
bool hn_set_is_packed(const char *path);
/* labels NULL: found by the pictures' name. */
hone_status hn_set_read_packed(hone_dataset *set, const char *path, const char *labels, hone_error *error);

#endif
