/* Small networks for tests, from text or made node by node, and sessions on them. Everything asserts. */
#ifndef HN_TESTS_NET_H
#define HN_TESTS_NET_H

#include "model/ir/graph.h"

#include <hone/session.h>

/* The network that the text (model/ir/text.h) says, with its shapes inferred. */
hn_model *net_parse(const char *name, const char *text);
/* The same as a file of that name in a folder. */
void net_save(const char *folder, const char *name, const char *text);
/* A model of opset 17 without nodes. */
hn_model *net_begin(void);
hn_value *net_input(hn_model *m, const char *name, hone_dtype dtype, int32_t rank, const int64_t *dims);
/* A node with one output, which is returned; the node is its own source. */
hn_value *net_op(hn_model *m, const char *type, hn_value *const *in, uint32_t n);
hn_value *net_constant(hn_model *m, hone_dtype dtype, int32_t rank, const int64_t *dims, const void *data);
/* A constant of seeded numbers in -0.5 .. 0.5. */
hn_value *net_weights(hn_model *m, int32_t rank, const int64_t *dims, unsigned seed);
/* Makes `out` an output, and returns it. */
hn_value *net_output(hn_model *m, hn_value *out);
/* The same for the last one; then the shapes are inferred. */
void net_finish(hn_model *m, hn_value *out);

/* 4 numbers, of which a Loop makes trips + 1 times as much: data decides how long it runs, 2^62 is for ever.
 */
hn_model *net_loop(int64_t trips);

typedef struct net_session {
  hn_model *model;
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
} net_session;

/* Takes the model. */
net_session net_open(hn_model *m, int level, bool reference, uint32_t threads);
void net_close(net_session *s);

#endif
