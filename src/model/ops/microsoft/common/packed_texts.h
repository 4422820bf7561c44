/* Texts that lie one behind the other: input `starts` says where each begins, and last where all end. Each
 * has a token or more. What the operators named Varlen... share. */
#ifndef HN_MODEL_OPS_MICROSOFT_PACKED_TEXTS_H
#define HN_MODEL_OPS_MICROSOFT_PACKED_TEXTS_H

#include "model/ops/microsoft/common/inner.h"

/* The attribute state_update_capacity, 0 to 8, and that input `captured` is there if it is above 0. */
hone_status hn_texts_capacity(const hone_infer *io, uint32_t captured, int64_t *capacity, hone_error *error);
/* Types and ranks of both inputs. */
hone_status hn_texts_infer(const hone_infer *io, uint32_t starts, uint32_t captured, hone_error *error);
/* How many texts there are, where it is known. */
int64_t hn_texts_batch(const hone_infer *io, uint32_t starts);
/* HONE_ERROR_INPUT unless the texts fill `tokens` tokens in order. */
hone_status hn_texts_check(const hone_node *node, const hone_tensor *starts, int64_t tokens,
                           hone_error *error);
/* How many tokens of text `row` are to be captured. */
int64_t hn_texts_captured(const hone_call *call, uint32_t captured, int64_t row, int64_t tokens,
                          int64_t capacity);

#endif
