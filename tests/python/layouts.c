/* Where the compiler puts the members of the structures that python/hone/_library.py describes: a line
 * "STRUCTURE size BYTES" each, and "STRUCTURE MEMBER OFFSET BYTES". */
#include <hone/model.h>
#include <hone/session.h>
#include <stddef.h>
#include <stdio.h>

#define AT(type, member)                                                                                     \
  printf("%s %s %zu %zu\n", #type, #member, offsetof(type, member), sizeof(((type *)0)->member))
#define SIZE(type) printf("%s size %zu\n", #type, sizeof(type))

int main(void) {
  SIZE(hone_error);
  AT(hone_error, status);
  AT(hone_error, what);
  AT(hone_error, where);
  AT(hone_error, expected);
  AT(hone_error, got);
  AT(hone_error, hint);

  SIZE(hone_quant);
  AT(hone_quant, count);
  AT(hone_quant, axis);
  AT(hone_quant, scale);
  AT(hone_quant, zero_point);

  SIZE(hone_tensor_desc);
  AT(hone_tensor_desc, dtype);
  AT(hone_tensor_desc, layout);
  AT(hone_tensor_desc, rank);
  AT(hone_tensor_desc, device);
  AT(hone_tensor_desc, dim);
  AT(hone_tensor_desc, stride);
  AT(hone_tensor_desc, channel_pitch);
  AT(hone_tensor_desc, quant);

  SIZE(hone_tensor);
  AT(hone_tensor, desc);
  AT(hone_tensor, data);

  SIZE(hone_items);
  AT(hone_items, count);
  AT(hone_items, item);

  SIZE(hone_string);
  AT(hone_string, ptr);
  AT(hone_string, len);

  SIZE(hone_port);
  AT(hone_port, name);
  AT(hone_port, desc);
  AT(hone_port, symbol);
  AT(hone_port, optional);

  SIZE(hone_binding);
  AT(hone_binding, input);
  AT(hone_binding, symbol);
  AT(hone_binding, rank);
  AT(hone_binding, dim);

  SIZE(hone_engine_options);
  AT(hone_engine_options, device);
  AT(hone_engine_options, threads);
  AT(hone_engine_options, isa);
  AT(hone_engine_options, tactics);
  AT(hone_engine_options, tuning);

  SIZE(hone_plan_options);
  AT(hone_plan_options, level);
  AT(hone_plan_options, precision);
  AT(hone_plan_options, f32_nodes);
  AT(hone_plan_options, n_f32_nodes);
  AT(hone_plan_options, bindings);
  AT(hone_plan_options, n_bindings);
  AT(hone_plan_options, batch);
  AT(hone_plan_options, reference);
  AT(hone_plan_options, passes);
  AT(hone_plan_options, fold_seconds);
  AT(hone_plan_options, prefer);
  AT(hone_plan_options, untuned);
  AT(hone_plan_options, chains);
  AT(hone_plan_options, separate);
  AT(hone_plan_options, preview);
  AT(hone_plan_options, slices);
  AT(hone_plan_options, weights);
  AT(hone_plan_options, over_bound);

  SIZE(hone_run_options);
  AT(hone_run_options, max_seconds);
  AT(hone_run_options, max_bytes);
  AT(hone_run_options, max_nodes);

  SIZE(hone_zoo_options);
  AT(hone_zoo_options, batch);
  AT(hone_zoo_options, width);
  AT(hone_zoo_options, size);
  AT(hone_zoo_options, seed);
  AT(hone_zoo_options, round);
  AT(hone_zoo_options, boxes);
  return 0;
}
