/* Labelled data: pictures with their class or their boxes, in the forms that people keep them in. */
#ifndef HONE_DATASET_H
#define HONE_DATASET_H

#include <hone/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable once opened; may be shared between threads. Pictures are read when they are asked for. */
typedef struct hone_dataset hone_dataset;

/* What the paths are is found out from them:
 *  - one folder with folders in it, or files of pictures or arrays: a folder's name is the class. Classes are
 *    numbered in the order of their names' bytes; where all names are whole numbers, these are the numbers.
 *  - MNIST's files (idx, also .gz), or the folder that holds one pair of them; labels may be left out where
 *    the file's name differs by "labels-idx1" for "images-idx3" alone.
 *  - CIFAR's binary files (.bin: 3073 bytes a picture, or 3074 with coarse and fine class).
 *  - a folder of pictures with `labels`: a text of lines "PATH CLASS" (the class a number, or the rest of the
 *    line as a name), paths relative to the folder. A file labels.txt in the folder is found.
 *  - the same with boxes: a COCO file (.json) as `labels`, or a text beside each picture (its name with .txt,
 *    also below "labels" where the picture lies below "images") with lines "CLASS X Y WIDTH HEIGHT": YOLO's,
 *    centre and size as parts of the picture's.
 *  - pictures without any of that: no labels. */
typedef struct hone_dataset_options {
  const char *const *paths;
  uint32_t n_paths;
  const char *labels; /* file, or NULL */
  const char *names;  /* text with a class a line, in the order of the model's outputs; NULL: none */
  bool unlabelled;    /* labels are not asked for: MNIST's pictures without theirs are taken, too */
} hone_dataset_options;

/* Whether a file holds many pictures: one of MNIST's (idx, also .gz) or CIFAR's. */
HONE_API bool hone_dataset_packed(const char *path);

/* What is known of a sample. */
typedef enum hone_truth { HONE_TRUTH_NONE = 0, HONE_TRUTH_CLASS, HONE_TRUTH_BOXES } hone_truth;

typedef struct hone_box {
  double x0, y0, x1, y1; /* pixels of the picture, from its left and upper edges */
  uint32_t cls;
  bool crowd; /* COCO's: stands for many, and is neither to be found nor to be held against a model */
} hone_box;

typedef struct hone_sample {
  const char *name; /* its file */
  uint64_t index;   /* in that file, where it holds many; else 0 */
  uint32_t cls;
  const hone_box *boxes; /* YOLO's, whose size is not known before the picture's, in parts of it */
  uint32_t n_boxes;
  bool relative; /* the boxes are */
} hone_sample;

/* HONE_ERROR_INPUT: nothing in it that hone knows, or contradictions. Lines and files that are wrong by
 * themselves are problems of the set, and left out. */
HONE_API hone_status hone_dataset_open(const hone_dataset_options *options, hone_dataset **out,
                                       hone_error *error);
HONE_API void hone_dataset_close(hone_dataset *set);
HONE_API uint64_t hone_dataset_samples(const hone_dataset *set);
HONE_API hone_truth hone_dataset_truth(const hone_dataset *set);
HONE_API const char *hone_dataset_kind(const hone_dataset *set); /* "class folders", "MNIST"...; static */
HONE_API uint32_t hone_dataset_classes(const hone_dataset *set);
HONE_API const char *hone_dataset_class(const hone_dataset *set, uint32_t i); /* its name; NULL: none such */
HONE_API bool hone_dataset_sample(const hone_dataset *set, uint64_t i, hone_sample *out);
/* What was left out: a line each, "FILE: WHY"; NULL: no more of them. */
HONE_API const char *hone_dataset_problem(const hone_dataset *set, uint64_t i);
/* The sample as an input, as hone_data_load reads a file; map (may be NULL): where its pixels are. */
HONE_API hone_status hone_dataset_load(const hone_dataset *set, uint64_t i, const hone_tensor_desc *want,
                                       const hone_preprocess *preprocess, hone_data *out,
                                       hone_picture_map *map, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
