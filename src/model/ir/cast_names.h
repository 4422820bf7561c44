/* Names of types: what `to` of Cast was before opset 6. */
#ifndef HN_MODEL_IR_CAST_NAMES_H
#define HN_MODEL_IR_CAST_NAMES_H

#include <hone/tensor.h>

/* NULL, NONE: there is no such name. */
const char *hn_cast_name(int64_t dtype);
hone_dtype hn_cast_named(const char *name);

#endif
