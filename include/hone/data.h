/* Inputs and outputs as files: .npy, .npz, ONNX .pb, .jpg, .png, and seeded random data. */
#ifndef HONE_DATA_H
#define HONE_DATA_H

#include <hone/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that owns its bytes; free with hone_data_free. */
typedef struct hone_data {
  hone_tensor tensor;
  void *impl;
} hone_data;

/* How pictures become tensors. Zeroed: scale 1/255, then the ImageNet mean and deviation, RGB. */
typedef struct hone_image_options {
  bool custom; /* use the fields below */
  float mean[3], std[3], scale;
  bool bgr;
} hone_image_options;

/* Reads a file for an input described by `want` (dtype NONE and unknown dims take the file's). The kind of
 * file is found by its first bytes (.pb by its name). Arrays are converted to want's dtype when no value is
 * lost (rounding between floating-point types is allowed, overflow is not), else refused. Pictures are
 * decoded, resized (bilinear, with the filter widened when shrinking) and normalised to want's NCHW (or NHWC
 * when the last dim is 1 or 3) shape; u8 inputs get plain bytes; a batch gets copies. `member`: entry of a
 * .npz, usually the input's name; "in:" + member and the only entry serve too. A path that is a number and
 * nothing else ("16000") is no file but the value of every element; want's dimensions must then be known (a
 * file of that name: "./16000"). HONE_ERROR_INPUT names the file. */
HONE_API hone_status hone_data_load(const char *path, const char *member, const hone_tensor_desc *want,
                                    const hone_image_options *image, hone_data *out, hone_error *error);
/* Seeded random values that a model can digest: floats standard normal; integers by the input's name and use
 * (masks all ones, token types zero, ids below `below`, otherwise small). below: smallest embedding table
 * that reads it, 0: 100. */
HONE_API hone_status hone_data_random(const char *name, const hone_tensor_desc *desc, int64_t below,
                                      uint64_t seed, hone_data *out, hone_error *error);
/* The same for input i of a model (without initializers first, as hone_model_input counts): ids stay below
 * the smallest table that reads them, and one integer that an If compares with a constant to choose its
 * branch is that constant: a model made for a sampling rate of 16000 gets 16000. HONE_ERROR_USAGE when there
 * is no such input or its shape is not known. Free with hone_data_free. */
HONE_API hone_status hone_data_for_input(const hone_model *model, uint32_t i, const hone_tensor_desc *desc,
                                         uint64_t seed, hone_data *out, hone_error *error);
/* Largest legal index of integer input i (from Gather tables it reads) or 0 when nothing is known. */
HONE_API int64_t hone_model_input_bound(const hone_model *model, uint32_t i);
HONE_API hone_status hone_data_save_npy(const hone_tensor *tensor, const char *path, hone_error *error);
HONE_API void hone_data_free(hone_data *data);

#ifdef __cplusplus
}
#endif
#endif
