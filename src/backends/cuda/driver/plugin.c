/* hone/cuda.h: launches of plugins' kernels. */
#include "backends/cuda/driver/context.h"
#include "base/error.h"
#include "base/str.h"

#include "base/registry.h"

#include <hone/cuda.h>
#include <stddef.h>
#include <string.h>

hone_status hone_cuda_launch(const hone_step_run *run, const hone_cuda_kernel *k, const void *args,
                             size_t size, hone_error *error) {
  if (!run || !run->pool || !k || !k->text || !k->entry || (!args && size))
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_cuda_launch needs a run, a kernel with text and entry, and arguments");
  /* What plugins of older headers have of it. */
  const size_t first = offsetof(hone_cuda_kernel, reserved);
  hone_status status = hn_check_desc("kernel", k->entry, k->struct_size, k->abi, first, error);
  if (status != HONE_OK) return status;
  hn_cuda_queue *queue = hn_cuda_queue_of(run);
  hn_str own = {0}, *text = queue->dry ? &own : &queue->text;
  hn_str_clear(text);
  if (k->head) hn_str_puts(text, k->head);
  hn_str_puts(text, k->text);
  if (text->failed) {
    hn_str_free(text);
    return hn_fail_memory(error, strlen(k->text), "a kernel's text");
  }
  /* The plugin's text is all there is; the file behind it is empty. */
  const hn_cuda_kernel kernel = {"custom", text->ptr, k->entry};
  const hn_cuda_shape shape = {.grid = {k->grid[0], k->grid[1], k->grid[2]},
                               .threads = k->threads,
                               .shared = k->shared,
                               .overlap = k->struct_size >= sizeof *k && k->overlap};
  status = hn_cuda_launch(queue, &kernel, &shape, args, size, error);
  hn_str_free(&own);
  return status;
}

void *hone_cuda_stream(const hone_step_run *run) {
  if (!run || !run->pool || hn_cuda_dry(hn_cuda_queue_of(run))) return NULL;
  return hn_cuda_stream(hn_cuda_queue_of(run));
}
