/* Inputs as they come: bytes of pictures, or halves, in place of the f32 that a model was trained with. */
#ifndef HONE_PICTURES_H
#define HONE_PICTURES_H

#include <hone/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_arriving {
  hone_dtype dtype; /* of the values that are given: NONE is u8 */
  hone_pixels
      pixels; /* how pictures lie: AUTO: as in the model's input; NHWC is what decoders and cameras give */
  /* What becomes of a value: scale, mean, std and bgr count (as for pictures of files: zeroed, or normalise
   * false, is ImageNet's for three channels), pixels says where the model's own channels are. NULL: values
   * stay what they are. */
  const hone_preprocess *preprocess;
} hone_arriving;

/* The model with input `input` taken so (NULL: the only one of floats): its first nodes convert, normalise
 * and lay out, so that this is part of the first steps of a plan, on the device. An f32 picture is 4 bytes a
 * value on its way to a GPU, as u8 it is one. The input keeps its name; *out is a new model, release it.
 * HONE_ERROR_USAGE: no such input, or preprocess for one that is no picture (3 or 4 dimensions, 1 or 3
 * channels); HONE_ERROR_UNSUPPORTED: the input is no tensor of floats, or an output itself. */
HONE_API hone_status hone_model_take(hone_model *model, const char *input, const hone_arriving *arriving,
                                     hone_model **out, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
