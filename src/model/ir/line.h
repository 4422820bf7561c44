/* Parts of a line's reader that the graph parser uses, too. */
#ifndef HN_MODEL_IR_LINE_H
#define HN_MODEL_IR_LINE_H

#include "model/ir/text.h"

/* Reads "f32[1x3xN]"; the current token is the element type (or ?). symbols NULL: names become unknown
 * dimensions. */
bool hn_lex_desc(hn_lex *lex, hn_model *symbols, hone_tensor_desc *desc);
/* Reads the values of a constant of that type into the lexer's arena; NULL after a failure. *budget: bytes
 * left. */
hone_tensor *hn_lex_constant(hn_lex *lex, const hone_tensor_desc *desc, uint64_t *budget);

#endif
