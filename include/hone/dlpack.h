/* Tensors from and to other libraries by DLPack (https://dmlc.github.io/dlpack): the very bytes, on the host
 * or on a device, without a copy. This header declares DLPack's DLTensor by itself; a pointer to one of
 * dlpack.h is a pointer to one of these, and so is the start of a DLManagedTensor. The capsules of Python and
 * their owners are the caller's matter: nothing here takes or gives ownership. */
#ifndef HONE_DLPACK_H
#define HONE_DLPACK_H

#include <hone/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLDeviceType of those that hone reaches. */
typedef enum hone_dl_device {
  HONE_DL_CPU = 1,
  HONE_DL_CUDA = 2,
  HONE_DL_CUDA_HOST = 3, /* pinned */
  HONE_DL_CUDA_MANAGED = 13
} hone_dl_device;

/* DLTensor, as its binary interface has been since DLPack 0.2. */
typedef struct hone_dl_tensor {
  void *data;
  int32_t device_type; /* hone_dl_device */
  int32_t device_id;
  int32_t ndim;
  uint8_t code; /* 0 i, 1 u, 2 float, 4 bfloat, 5 complex, 6 bool */
  uint8_t bits;
  uint16_t lanes; /* 1 */
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} hone_dl_tensor;

/* The tensor that a DLTensor shows, for hone_context_bind_input and _output: desc.device is 0 on the host,
 * else its number + 1. The bytes stay the other library's, which has to be done with writing them (a stream
 * of CUDA is to be waited for). HONE_ERROR_UNSUPPORTED: another device, an element type or a number of
 * dimensions that hone has not. */
HONE_API hone_status hone_dlpack_import(const hone_dl_tensor *from, hone_tensor *out, hone_error *error);
/* The way back. dim[2 * HONE_MAX_RANK] holds the shape and the strides: it and the tensor live as long as
 * *out is used. pinned: host memory that CUDA knows. HONE_ERROR_UNSUPPORTED: a type that DLPack has not. */
HONE_API hone_status hone_dlpack_export(const hone_tensor *from, bool pinned, hone_dl_tensor *out,
                                        int64_t *dim, hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
