/* Files of tensors and pictures: what the readers of this folder share. */
#ifndef HN_RUNTIME_DATA_H
#define HN_RUNTIME_DATA_H

#include "base/arena.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/picture/picture.h"

#include <hone/data.h>

/* One .npy image -> a row-major tensor of its own dtype in the arena. */
hone_status hn_npy_parse(hn_bytes npy, hn_arena *arena, hone_tensor *out, hone_error *error);

/* What the beginning of a .npy says: the array, where its elements begin, and whether they lie there as a
 * tensor's do. */
hone_status hn_npy_head(hn_bytes npy, hone_tensor_desc *desc, size_t *body, bool *plain, hone_error *error);

/* An array of a .npy, or of an entry of a .npz, some elements at a time: of a packed one only a window is in
 * memory. Reading forwards is cheap; what lies before the last read begins anew. *out is NULL where the file
 * is no such array, or its elements lie otherwise: then it has to be loaded as a whole. */
typedef struct hn_array hn_array;
hone_status hn_array_open(const char *path, const char *member, hn_array **out, hone_error *error);
const hone_tensor_desc *hn_array_desc(const hn_array *array); /* in the file's dtype */
/* Bytes [at, at + size) of the elements. */
hone_status hn_array_read(hn_array *array, uint64_t at, void *to, size_t size, hone_error *error);
void hn_array_close(hn_array *array); /* NULL is fine */

/* Where an entry of a .npz lies. */
typedef struct hn_npz_member {
  hn_bytes packed;
  size_t size; /* unpacked */
  uint32_t crc;
  bool deflated;
} hn_npz_member;
hone_status hn_npz_find(hn_bytes zip, const char *member, uint64_t limit, hn_npz_member *out,
                        hone_error *error);

/* The wanted entry of a .npz (see hone_data_load), inflated into the arena. `limit`: most bytes it may have.
 */
hone_status hn_npz_entry(hn_bytes zip, const char *member, uint64_t limit, hn_arena *arena, hn_bytes *npy,
                         hone_error *error);

/* Is the text a number and nothing else? Then it is an input's value, not a file's name (./7 is the file). */
bool hn_is_number(const char *text);
/* A tensor of the wanted shape and type full of that number; HONE_ERROR_INPUT where the type cannot hold it.
 */
hone_status hn_number_tensor(const char *text, const hone_tensor_desc *want, hn_arena *arena,
                             hone_tensor *out, hone_error *error);

/* Does an If compare input i (as hone_model_input counts) with a constant to choose its branch? */
bool hn_data_chooses(const hone_model *model, uint32_t i);

/* One axis of a picture that is fitted into a tensor: the pixels [begin, end) of the tensor show the picture
 * from `origin` on, `ratio` of its pixels each; the others are bars. */
typedef struct hn_fit_axis {
  double origin, ratio;
  int64_t begin, end;
} hn_fit_axis;

/* The tensor's height and width where they are 0, and how the picture is fitted into them. */
hone_status hn_picture_fit(const hn_picture *picture, const hone_preprocess *preprocess, int64_t *height,
                           int64_t *width, hn_fit_axis *y, hn_fit_axis *x, hone_error *error);

/* Fits a picture into a tensor of the wanted shape and dtype. map may be NULL. */
hone_status hn_picture_tensor(const hn_picture *picture, const hone_tensor_desc *want,
                              const hone_preprocess *preprocess, hn_arena *arena, hone_tensor *out,
                              hone_picture_map *map, hone_error *error);

/* Mean and deviation of a picture's pixels, 0 black and 1 white, from the tensor (f32 or u8) that
 * `preprocess` made of it; of the first of a batch. False: it cannot be told. */
bool hn_picture_light(const hone_tensor *tensor, const hone_preprocess *preprocess, double *mean,
                      double *deviation);

/* The same values as another dtype: exact, or rounded between floating-point types; anything else that would
 * be lost is an error. */
hone_status hn_tensor_convert(const hone_tensor *from, hone_dtype dtype, hn_arena *arena, hone_tensor *out,
                              hone_error *error);

/* A whole file of any kind that is known; path is only looked at for its ending. map (may be NULL) is written
 * where it is a picture. */
hone_status hn_data_parse(const char *path, hn_bytes file, const char *member, const hone_tensor_desc *want,
                          const hone_preprocess *preprocess, hn_arena *arena, hone_tensor *out,
                          hone_picture_map *map, hone_error *error);

/* hone_data_load, which also says where the picture's pixels are. */
hone_status hn_data_read(const char *path, const char *member, const hone_tensor_desc *want,
                         const hone_preprocess *preprocess, hone_data *out, hone_picture_map *map,
                         hone_error *error);

#endif
