/* ONNX files in and out. The rest of hone sees only hn_model and hone_tensor; protobuf ends in this folder.
 */
#ifndef HN_MODEL_ONNX_ONNX_H
#define HN_MODEL_ONNX_ONNX_H

#include "model/ir/graph.h"

/* Reads a model. Its graph is sorted, local functions are inlined, every node of the file is in
 * model->source; what the file declares about values is in their descriptors. Operators are not looked up:
 * see hn_model_resolve and hn_model_infer. Tensors borrow from the file's mapping, which the model keeps,
 * where their alignment allows it. Errors: HONE_ERROR_INPUT, HONE_ERROR_UNSUPPORTED, HONE_ERROR_IO,
 * HONE_ERROR_MEMORY. */
hone_status hn_onnx_load(const char *path, hn_model **out, hone_error *error);

/* The same from memory, which must stay as it is while the model lives. `folder` is where external data may
 * lie; NULL refuses external data. `name` stands for the path in messages. */
hone_status hn_onnx_load_memory(const void *data, size_t size, const char *folder, const char *name,
                                hn_model **out, hone_error *error);

/* Reads a TensorProto file (.pb) into the arena, bytes included; external data is refused. *name, if not
 * NULL, is set to the tensor's own name (in the arena). Files that hold a sequence or an optional are refused
 * as such (HONE_ERROR_UNSUPPORTED). */
hone_status hn_onnx_load_tensor(const char *path, hn_arena *arena, hone_tensor *out, const char **name,
                                hone_error *error);
hone_status hn_onnx_load_tensor_memory(const void *data, size_t size, const char *file, hn_arena *arena,
                                       hone_tensor *out, const char **name, hone_error *error);

/* The same for a value of that type: a SequenceProto or OptionalProto where it is no tensor's (a hone_items
 * in the arena, of the tensors in the file; HONE_ERROR_INPUT when these are of another type). A tensor may be
 * of any type. */
hone_status hn_onnx_load_value(const char *path, hone_dtype dtype, hn_arena *arena, hone_tensor *out,
                               hone_error *error);
hone_status hn_onnx_load_value_memory(const void *data, size_t size, const char *file, hone_dtype dtype,
                                      hn_arena *arena, hone_tensor *out, hone_error *error);

/* Writes a model as ONNX: IR version and opsets as they are, constants as initializers (raw little endian),
 * known shapes as value_info. Weights are written from where they lie, through a temporary file that is
 * renamed at the end. Beyond protobuf's 2 GiB: HONE_ERROR_UNSUPPORTED. */
hone_status hn_onnx_save(const hn_model *model, const char *path, hone_error *error);

/* Location of tensors whose bytes a file leaves out on purpose. */
#define HN_ONNX_ABSENT "hone:absent"

/* Says of a constant of the main graph whether its bytes are left out; else it may set where they are. */
typedef struct hn_onnx_filter {
  bool (*leave_out)(void *self, const hn_value *value, hone_tensor *tensor);
  void *self;
} hn_onnx_filter;

/* The same into memory. */
hone_status hn_onnx_save_memory(const hn_model *model, const hn_onnx_filter *filter, hn_str *out,
                                hone_error *error);
/* hn_onnx_load_memory of such: the bytes that were left out are those at `absent`, of which there are
 * `absent_bytes`. */
hone_status hn_onnx_load_partial(const void *data, size_t size, const char *name, const void *absent,
                                 size_t absent_bytes, hn_model **out, hone_error *error);

/* Writes one row-major tensor as TensorProto. */
hone_status hn_onnx_save_tensor(const hone_tensor *tensor, const char *name, const char *path,
                                hone_error *error);

#endif
