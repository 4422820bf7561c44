/* Reformat: the same elements in another layout or floating type, in one pass. Few channels: a thread a
 * pixel; many: transposed tiles; where both sides run the same way: a generated copy. */
#include "backends/cuda/device/moves_args.h"
#include "backends/cuda/elementwise/elementwise.h"
#include "backends/cuda/movement/tile.h"
#include "backends/cuda/step/launch.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "optimize/step/boxes.h"

#include <string.h>

enum { THREADS = 256, PIXELS_EACH = 4 };

static bool is_float(hone_dtype d) {
  return d == HONE_DTYPE_F32 || d == HONE_DTYPE_F16 || d == HONE_DTYPE_BF16;
}

/* Descriptors as the kernels see them: bits where nothing is converted. */
static bool describe(const hone_step *s, hone_tensor_desc *x, hone_tensor_desc *y, hone_reason *why) {
  *x = s->input[0].desc, *y = s->output[0].desc;
  if (s->n_epilogue) return hn_refuse(why, "a move has no epilogue");
  if (!hone_desc_known(x) || !hone_desc_known(y)) return hn_refuse(why, "dimensions are not known");
  if (!hone_desc_same_dims(x, y)) return hn_refuse(why, "a reformat keeps the dimensions");
  if (hone_desc_count(y) >= 0x7fffffff) return hn_refuse(why, "more than 2^31 elements");
  if (x->dtype == y->dtype) {
    if (!hn_box_element(x->dtype)) return hn_refuse(why, "%s is not moved", hone_dtype_name(x->dtype));
    x->dtype = y->dtype = hn_cuda_bits_of(x->dtype);
  } else if (!is_float(x->dtype) || !is_float(y->dtype)) {
    return hn_refuse(why, "%s does not become %s", hone_dtype_name(x->dtype), hone_dtype_name(y->dtype));
  }
  return true;
}

static bool is_power(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

/* One side has planes, the other short pixels: `planes` is set to the one with planes. */
static bool few_channels(const hone_tensor_desc *x, const hone_tensor_desc *y, bool *to_pixels) {
  *to_pixels = y->layout == HONE_LAYOUT_CHANNELS_LAST;
  const hone_tensor_desc *pixels = *to_pixels ? y : x, *planes = *to_pixels ? x : y;
  if (pixels->layout != HONE_LAYOUT_CHANNELS_LAST || planes->layout != HONE_LAYOUT_ROW_MAJOR ||
      pixels->rank < 3)
    return false;
  int64_t step = pixels->channel_pitch; /* pixels behind each other: not a part of wider ones */
  for (int32_t i = pixels->rank - 1; i >= 0; i--) {
    if (i == 1) continue;
    if (pixels->dim[i] > 1 && pixels->stride[i] != step) return false;
    step *= pixels->dim[i];
  }
  const int64_t bytes = pixels->channel_pitch * (int64_t)hone_dtype_size(pixels->dtype);
  return pixels->channel_pitch <= 16 && is_power(bytes) && bytes <= 64;
}

static hone_status run_planes(const hone_step_run *r, const hone_tensor_desc *x, const hone_tensor_desc *y,
                              bool to_pixels, hone_error *error) {
  const hone_tensor_desc *pixels = to_pixels ? y : x, *planes = to_pixels ? x : y;
  hn_planes_args a;
  hn_str prefix = {0};
  const int64_t n = hn_dims(y, 2, y->rank);
  memset(&a, 0, sizeof a);
  a.to = r->out[0], a.from = r->in[0];
  a.plane = n, a.image_planes = n * y->dim[1], a.image_pixels = n * pixels->channel_pitch;
  a.channels = (uint32_t)y->dim[1], a.pixels = (uint32_t)n, a.images = (uint32_t)y->dim[0];
  const uint32_t groups = hn_cuda_blocks(n, THREADS * PIXELS_EACH);
  a.groups = hn_cuda_divisor(groups);
  const bool words = to_pixels && hone_dtype_size(x->dtype) == 1 && pixels->channel_pitch == 16 &&
                     y->dim[1] <= 4 && n % 4 == 0 && !((uintptr_t)a.from % 4) && !((uintptr_t)a.to % 16);
  hn_str_printf(&prefix,
                "#define HN_FROM %s\n#define HN_TO %s\n#define HN_PLANE_SIZE %d\n#define HN_PIXEL_SIZE %d\n"
                "#define HN_CHANNELS %d\n#define HN_TO_PIXELS %d\n",
                hone_dtype_name(x->dtype), hone_dtype_name(y->dtype), (int)hone_dtype_size(planes->dtype),
                (int)hone_dtype_size(pixels->dtype), (int)pixels->channel_pitch, to_pixels);
  hone_status status = HONE_OK;
  if (prefix.failed) {
    status = hn_fail_memory(error, prefix.cap, "device text");
  } else {
    const hn_cuda_kernel kernel = {words ? "code_pixels" : "planes", words ? NULL : prefix.ptr,
                                   words ? "code_pixels" : "planes"};
    const hn_cuda_shape shape = {
        .grid = {groups * (uint32_t)y->dim[0], 1, 1}, .threads = THREADS, .overlap = true};
    status = hn_cuda_launch(hn_cuda_queue_of(r), &kernel, &shape, &a, sizeof a, error);
  }
  hn_str_free(&prefix);
  return status;
}

static void body(const hone_step *s, const hn_cuda_elementwise *plan, hn_str *text) {
  (void)s, (void)plan;
  hn_str_puts(text, "    o0 = i0;\n");
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  hone_tensor_desc x, y;
  hn_cuda_elementwise plan;
  const hone_tensor_desc *in = &x, *out = &y;
  (void)m;
  return describe(s, &x, &y, why) && hn_cuda_elementwise_plan(&plan, &out, 1, &in, 1, NULL, 0, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  hone_tensor_desc x, y;
  if (!describe(s, &x, &y, NULL)) return HN_REFUSED_SECONDS;
  return hn_cuda_seconds(m, 0, 0, (double)hone_desc_bytes(&x) + (double)hone_desc_bytes(&y), 0.82);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  hone_tensor_desc x, y;
  hn_cuda_elementwise plan;
  hone_reason why = {""};
  const hone_tensor_desc *in = &x, *out = &y;
  void *at[2] = {r->out[0], (void *)(uintptr_t)r->in[0]};
  bool to_pixels;
  if (!describe(r->step, &x, &y, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "reformat: %s", why.text);
  if (hone_desc_count(&y) == 0) return HONE_OK;
  if (few_channels(&x, &y, &to_pixels)) return run_planes(r, &x, &y, to_pixels, error);
  hn_nest n;
  hn_nest_begin(&n, y.rank, y.dim);
  hn_nest_add(&n, y.stride);
  hn_nest_add(&n, x.stride);
  hn_nest_finish(&n);
  hn_cuda_tile tile = {.nest = &n, .from = x.dtype, .to = y.dtype};
  if (hn_cuda_tile_of(&n, &tile.source)) {
    if (y.layout == HONE_LAYOUT_CHANNELS_LAST) tile.padded = y.channel_pitch;
    return hn_cuda_tile_launch(hn_cuda_queue_of(r), &tile, r->out[0], r->in[0], error);
  }
  if (!hn_cuda_elementwise_plan(&plan, &out, 1, &in, 1, at, 0, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "reformat: %s", why.text);
  return hn_cuda_elementwise_launch(hn_cuda_queue_of(r), r->step, &plan, body, at, error);
}

HN_TACTIC(cuda, reformat, "Reformat", 1, .accepts = accepts, .cost = cost, .run = run);
