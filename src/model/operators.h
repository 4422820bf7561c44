/* The library's operators, and which of them a node is. */
#ifndef HN_MODEL_OPERATORS_H
#define HN_MODEL_OPERATORS_H

#include "base/registry.h"
#include "model/ir/graph.h"

/* Of hone_op_desc, by op_type. Begins with ops.def. Two with the same domain, type and first opset are
 * refused; of several that hold for a model's opset the one with the newest first opset counts. */
extern hn_registry hn_operators;

/* An operator as a model of that opset means it; *why_not (may be NULL) says in words what is missing when
 * NULL is returned. operators: those of the model (model->operators), or a listing of hn_operators. */
const hone_op_desc *hn_op_find(const hn_listing *operators, const char *domain, const char *op_type,
                               int64_t opset, hone_reason *why_not);
/* Its newest definition that is known, and in *opset the newest opset for which that holds. */
const hone_op_desc *hn_op_newest(const hn_listing *operators, const char *domain, const char *op_type,
                                 int64_t *opset);

/* Looks up node->op for every node, checks opset, arity, attributes and their types. All nodes that are
 * refused are counted and listed in one error (HONE_ERROR_UNSUPPORTED). Recurses. The model keeps the listing
 * of operators that it was first resolved with: now's, unless it has one. */
hone_status hn_model_resolve(hn_model *model, hone_error *error);

/* What a model needs once its nodes are there: resolves them, and infers the shapes of their values. */
hone_status hn_model_ready(hn_model *model, hone_error *error);

#endif
