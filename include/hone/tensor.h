/* Data types, the one tensor descriptor, and tensors. */
#ifndef HONE_TENSOR_H
#define HONE_TENSOR_H

#include <hone/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_MAX_RANK 8

/* Element types. The numbers are those of ONNX TensorProto.DataType, so that no table is needed between the
 * two. */
typedef enum hone_dtype {
  HONE_DTYPE_NONE = 0,
  HONE_DTYPE_F32 = 1,
  HONE_DTYPE_U8 = 2,
  HONE_DTYPE_I8 = 3,
  HONE_DTYPE_U16 = 4,
  HONE_DTYPE_I16 = 5,
  HONE_DTYPE_I32 = 6,
  HONE_DTYPE_I64 = 7,
  HONE_DTYPE_STRING = 8,
  HONE_DTYPE_BOOL = 9,
  HONE_DTYPE_F16 = 10,
  HONE_DTYPE_F64 = 11,
  HONE_DTYPE_U32 = 12,
  HONE_DTYPE_U64 = 13,
  HONE_DTYPE_C64 = 14,  /* named, never computed with */
  HONE_DTYPE_C128 = 15, /* named, never computed with */
  HONE_DTYPE_BF16 = 16,
  /* Stored and converted, never computed with. In memory an element has a byte: the code of a float in its
   * lowest bits, an integer as its value. */
  HONE_DTYPE_F8E4M3FN = 17,
  HONE_DTYPE_F8E4M3FNUZ = 18,
  HONE_DTYPE_F8E5M2 = 19,
  HONE_DTYPE_F8E5M2FNUZ = 20,
  HONE_DTYPE_U4 = 21,
  HONE_DTYPE_I4 = 22,
  HONE_DTYPE_F4E2M1 = 23,
  HONE_DTYPE_F8E8M0 = 24,
  HONE_DTYPE_U2 = 25,
  HONE_DTYPE_I2 = 26,
  HONE_DTYPE_F6E2M3 = 27,
  HONE_DTYPE_F6E3M2 = 28,
  HONE_DTYPE_COUNT = 29
} hone_dtype;

/* Types of values that are no tensors: the element type of the tensors in them, with one of these bits, or
 * with both for an optional sequence. Such a value is a hone_tensor of rank 0 whose data is one hone_items.
 */
#define HONE_SEQUENCE 64
#define HONE_OPTIONAL 128
/* A map, or with HONE_SEQUENCE a sequence of maps: the type of its values, with the bit that says what its
 * keys are. */
#define HONE_MAP_I64 256
#define HONE_MAP_STRING 512
#define HONE_SEQUENCE_OF(dtype) ((hone_dtype)(HONE_SEQUENCE | (dtype)))
#define HONE_OPTIONAL_OF(dtype) ((hone_dtype)(HONE_OPTIONAL | (dtype)))

/* Element of a HONE_DTYPE_STRING tensor. Not NUL-terminated; bytes are owned by the tensor's owner. */
typedef struct hone_string {
  const char *ptr;
  size_t len;
} hone_string;

/* Order of the elements in memory. Dimensions are always given in ONNX order (N, C, spatial...). */
typedef enum hone_layout {
  HONE_LAYOUT_ROW_MAJOR = 0,     /* the last dimension is contiguous */
  HONE_LAYOUT_CHANNELS_LAST = 1, /* dimension 1 is contiguous: NHWC for rank 4, NWC for 3, NDHWC for 5 */
  HONE_LAYOUT_STRIDED = 2        /* anything else: strides say it all */
} hone_layout;

/* Dimension values: >= 0 known; HONE_DIM_UNKNOWN or below: unknown. Values <= -2 are named symbols of the
 * model: two equal ones are the same size. */
#define HONE_DIM_UNKNOWN (-1)

/* Affine quantisation: real = scale[i] * (q - zero_point[i]), i along `axis` (axis < 0: one scale for all).
 * Where a plan hands out descriptors, the numbers are its own: they live as long as it does. */
typedef struct hone_quant {
  uint32_t
      count; /* 0: not quantised, or nobody says how; 1: per tensor; else the length of dimension `axis` */
  int32_t axis;
  const float *scale;        /* [count], borrowed */
  const int32_t *zero_point; /* [count], borrowed; NULL means all zero */
} hone_quant;

/* Everything a tactic may want to know of a tensor, apart from where its bytes are. */
typedef struct hone_tensor_desc {
  hone_dtype dtype;
  hone_layout layout;
  int32_t rank;   /* -1: unknown */
  int32_t device; /* 0: host; n + 1: accelerator n */
  int64_t dim[HONE_MAX_RANK];
  int64_t stride[HONE_MAX_RANK]; /* in elements; meaningful once all dimensions are known */
  int64_t channel_pitch; /* CHANNELS_LAST: elements from one pixel to the next (>= channels); else 0 */
  hone_quant quant;
} hone_tensor_desc;

/* A tensor: descriptor and bytes. Who owns `data` is said by the function that hands the tensor out. */
typedef struct hone_tensor {
  hone_tensor_desc desc;
  void *data;
} hone_tensor;

/* What a sequence, an optional or a map holds: the tensors (or maps) of a sequence in their order; of an
 * optional nothing, or one tensor (or sequence); of a map two vectors of one length, its keys and its values.
 * The tensors of a sequence have one element type and may differ in shape. */
typedef struct hone_items {
  size_t count;
  const hone_tensor *const *item; /* [count] row-major, on the host; owned by the value's owner */
} hone_items;

/* False for sequences, optionals and maps. */
HONE_API bool hone_dtype_is_tensor(hone_dtype dtype);
/* Of the tensors in a sequence or optional; of a map's values; a tensor's own. */
HONE_API hone_dtype hone_dtype_element(hone_dtype dtype);
/* Bytes of one element (sizeof(hone_items) for sequences and optionals, sizeof(hone_string) for strings, 0
 * for NONE). */
HONE_API size_t hone_dtype_size(hone_dtype dtype);
/* "f32", "i64", "string", "seq f32", "optional seq f32", "map_i64 f32", "seq map_string f32"... Static
 * storage. */
HONE_API const char *hone_dtype_name(hone_dtype dtype);
/* Inverse of hone_dtype_name; HONE_DTYPE_NONE when there is none. */
HONE_API hone_dtype hone_dtype_from_name(const char *name);
HONE_API bool hone_dtype_is_float(hone_dtype dtype);
HONE_API bool hone_dtype_is_signed_int(hone_dtype dtype);
HONE_API bool hone_dtype_is_unsigned_int(hone_dtype dtype);

/* Row-major descriptor; dims may hold unknown values (then strides are 0). rank must be <= HONE_MAX_RANK. */
HONE_API hone_tensor_desc hone_desc(hone_dtype dtype, int32_t rank, const int64_t *dims);
/* Sets the strides (and channel pitch) that belong to `layout`; needs known dimensions. pitch 0: dense. */
HONE_API void hone_desc_set_layout(hone_tensor_desc *desc, hone_layout layout, int64_t channel_pitch);
/* True when rank and all dimensions are known. */
HONE_API bool hone_desc_known(const hone_tensor_desc *desc);
/* Number of elements (1 for rank 0), or -1 when unknown or beyond INT64_MAX. */
HONE_API int64_t hone_desc_count(const hone_tensor_desc *desc);
/* Bytes from the first to one past the last element, padding included; -1 when unknown or too large. */
HONE_API int64_t hone_desc_bytes(const hone_tensor_desc *desc);
HONE_API bool hone_desc_same_dims(const hone_tensor_desc *a, const hone_tensor_desc *b);
/* "f32[1x3x224x224]" (with " channels-last" where it applies) into buf; returns buf. */
HONE_API char *hone_desc_format(const hone_tensor_desc *desc, char *buf, size_t size);
/* "scale 0.05 zero 114", or "64 scales on axis 0", into buf ("" where count is 0); returns buf. */
HONE_API char *hone_quant_format(const hone_quant *quant, char *buf, size_t size);
HONE_API bool hone_quant_same(const hone_quant *a, const hone_quant *b);

#ifdef __cplusplus
}
#endif
#endif
