/* Where the compiler puts the members of the structures that python/hone/_library.py describes: a line
 * "STRUCTURE size BYTES" each, and "STRUCTURE MEMBER OFFSET BYTES". */
#include <hone/model.h>
#include <hone/session.h>
#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf("%s size %zu\n", #type, sizeof(type));
#define AT(type, member)                                                                                     \
  printf("%s %s %zu %zu\n", #type, #member, offsetof(type, member), sizeof(((type *)0)->member));
#define ALL(X, type) SIZE(type) X(type)

#define ERROR(t) AT(t, status) AT(t, what) AT(t, where) AT(t, expected) AT(t, got) AT(t, hint)
#define QUANT(t) AT(t, count) AT(t, axis) AT(t, scale) AT(t, zero_point)
#define DESC(t)                                                                                              \
  AT(t, dtype)                                                                                               \
  AT(t, layout) AT(t, rank) AT(t, device) AT(t, dim) AT(t, stride) AT(t, channel_pitch) AT(t, quant)
#define TENSOR(t) AT(t, desc) AT(t, data)
#define ITEMS(t) AT(t, count) AT(t, item)
#define STRING(t) AT(t, ptr) AT(t, len)
#define PORT(t) AT(t, name) AT(t, desc) AT(t, symbol) AT(t, optional)
#define BINDING(t) AT(t, input) AT(t, symbol) AT(t, rank) AT(t, dim)
#define ENGINE(t) AT(t, device) AT(t, threads) AT(t, isa) AT(t, tactics) AT(t, tuning)
#define PLAN(t)                                                                                              \
  AT(t, level)                                                                                               \
  AT(t, precision)                                                                                           \
  AT(t, f32_nodes) AT(t, n_f32_nodes) AT(t, bindings) AT(t, n_bindings) AT(t, batch) AT(t, reference)        \
      AT(t, passes) AT(t, fold_seconds) AT(t, prefer) AT(t, untuned) AT(t, chains) AT(t, separate)           \
          AT(t, preview)
#define RUN(t) AT(t, max_seconds) AT(t, max_bytes) AT(t, max_nodes)
#define ZOO(t) AT(t, batch) AT(t, width) AT(t, size) AT(t, seed) AT(t, round)

int main(void) {
  ALL(ERROR, hone_error)
  ALL(QUANT, hone_quant)
  ALL(DESC, hone_tensor_desc)
  ALL(TENSOR, hone_tensor)
  ALL(ITEMS, hone_items)
  ALL(STRING, hone_string)
  ALL(PORT, hone_port)
  ALL(BINDING, hone_binding)
  ALL(ENGINE, hone_engine_options)
  ALL(PLAN, hone_plan_options)
  ALL(RUN, hone_run_options)
  ALL(ZOO, hone_zoo_options)
  return 0;
}
