/* Tensors of named nodes on both sides. Inside of improve only. */
#ifndef HN_IMPROVE_DUMP_H
#define HN_IMPROVE_DUMP_H

#include "improve/side.h"

/* Runs both sides once more. HONE_ERROR_USAGE names what the reference does not have. */
hone_status hn_dump_sides(hn_side *reference, hn_side *test, const hn_feed *feeds, uint32_t n,
                          const hone_dump *dump, hone_error *error);

#endif
