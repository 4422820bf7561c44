#include "model/onnx/schema.h"

/* One constant per field, then one row per message that points to them by number. A number beyond the row
 * does not compile. */
#define MESSAGE(...)
#define FIELD(message, id, no, text, shape, what)                                                            \
  static const hn_pb_field_desc field_##message##_##id = {                                                   \
      .number = no, .form = HN_PB_##shape, .holds = HN_ONNX_##what, .name = text};
#include "model/onnx/schema.def"
#undef MESSAGE
#undef FIELD

/* Later designators add to a row that an earlier one began, because they name its elements and not the row.
 */
#define SKIP true
#define REFUSE false
#define MESSAGE(id, text, policy) [HN_ONNX_##id].name = text, [HN_ONNX_##id].skip_unknown = policy,
#define FIELD(message, id, no, ...) [HN_ONNX_##message].field[no] = &field_##message##_##id,
const hn_pb_message_desc hn_pb_messages[HN_ONNX_MESSAGES] = {
#include "model/onnx/schema.def"
};
#undef MESSAGE
#undef FIELD
