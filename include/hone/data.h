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

/* Values of a model on its way through an input. `put` gets those that the nodes or values of these names
 * make: which: index into names; output: of the node; side: which of two runs. They are its own only while it
 * runs. */
typedef struct hone_dump {
  const char *const *names;
  uint32_t n;
  hone_status (*put)(void *arg, uint32_t which, uint32_t output, const char *side, const hone_tensor *tensor,
                     hone_error *error);
  void *arg;
} hone_dump;

/* How a picture gets a size that is not its own. */
typedef enum hone_fit {
  HONE_FIT_STRETCH = 0, /* each side by itself */
  HONE_FIT_LETTERBOX    /* as large as fits with its proportions, in the middle, bars around it */
} hone_fit;

/* Where the channels of an input for pictures are. */
typedef enum hone_pixels {
  HONE_PIXELS_AUTO = 0, /* NCHW where dimension 1 is 1 or 3, NHWC where the last one is */
  HONE_PIXELS_NCHW,
  HONE_PIXELS_NHWC
} hone_pixels;

/* How pictures become tensors. Zeroed: stretched to the input's size, RGB, bytes / 255, then the mean and
 * deviation of ImageNet (grey inputs: bytes / 255 and no more). Inputs of bytes (u8) get bytes, whatever is
 * said of scale, mean and deviation. The steps happen in this order, in one resampling: bilinear, with the
 * filter widened where it shrinks. */
typedef struct hone_preprocess {
  int64_t resize_h, resize_w; /* first to this size; resize_w 0: the shorter side becomes resize_h; 0: not */
  int64_t crop_h, crop_w;     /* then the centre of this size is cut out; 0: all stays. A picture that is
                               * smaller is enlarged until it covers that */
  hone_fit fit;               /* then that becomes as large as the input */
  uint8_t pad;                /* brightness of a letterbox's bars */
  bool bgr;
  bool normalise; /* (byte * scale - mean[c]) / std[c], c counted as the tensor has it; grey: c = 0 */
  float scale, mean[3], std[3];
  hone_pixels pixels;
} hone_preprocess;

/* Where the pixels of a picture are in its tensor: x of the picture = x0 + dx * (x of the tensor), both
 * counted from the left edge, and the same for y. */
typedef struct hone_picture_map {
  int64_t width, height;               /* of the picture; 0: it was an array */
  int64_t tensor_width, tensor_height; /* of what it became */
  double x0, y0, dx, dy;
} hone_picture_map;

/* Reads a file for an input described by `want` (dtype NONE and unknown dims take the file's). The kind of
 * file is found by its first bytes (.pb by its name: a TensorProto, or the SequenceProto or OptionalProto
 * that want's type says). Arrays are converted to want's dtype when no value is lost (rounding between
 * floating-point types is allowed, overflow is not), else refused. Pictures are decoded and become want's
 * shape as `preprocess` says (NULL: as zeroed), which sets a height and width that want leaves open, too
 * (else the picture does); a batch gets copies. `member`: entry of a .npz, usually the input's name; "in:" +
 * member and the only entry serve too. A path that is a number and nothing else ("16000") is no file but the
 * value of every element; want's dimensions must then be known (a file of that name: "./16000").
 * HONE_ERROR_INPUT names the file. */
HONE_API hone_status hone_data_load(const char *path, const char *member, const hone_tensor_desc *want,
                                    const hone_preprocess *preprocess, hone_data *out, hone_error *error);
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
