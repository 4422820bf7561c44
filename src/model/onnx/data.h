/* TensorProto: descriptor and bytes of a tensor, wherever the file keeps them. */
#ifndef HN_MODEL_ONNX_DATA_H
#define HN_MODEL_ONNX_DATA_H

#include "base/map.h"
#include "base/os.h"
#include "base/vec.h"
#include "model/onnx/wire.h"

#include <hone/tensor.h>

typedef HN_VEC(hn_file) hn_onnx_files;

/* Where tensors go, and where external data may come from. */
typedef struct hn_onnx_data {
  hn_arena *arena;
  bool copy;          /* never borrow from the source */
  bool loose;         /* large numeric tensors may stay where they are at any alignment */
  const void *absent; /* bytes of tensors at HN_ONNX_ABSENT; NULL: there are none */
  size_t absent_bytes;
  const char *folder;   /* NULL: external data is refused */
  hn_onnx_files *files; /* mappings made so far; they must live as long as the tensors */
  hn_map by_location;   /* location -> index into files, plus 1 */
} hn_onnx_data;

/* Reads one TensorProto. *name may be NULL (not wanted); otherwise "" when the tensor has none. */
hone_status hn_onnx_tensor(hn_onnx_data *data, hn_pb *m, hone_tensor *out, const char **name);

/* Name of a TensorProto.DataType for messages, also of those that hone does not read. */
const char *hn_onnx_type_name(int64_t type);

/* The file that `location` names below the folder, mapped once. */
hone_status hn_onnx_external(hn_onnx_data *data, const hn_pb *m, const char *tensor, const char *location,
                             hn_file *out);

#endif
