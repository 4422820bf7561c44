#include "tactics/device_step.h"

#include "base/mem.h"
#include "optimize/step/tactics.h"
#include "runtime/devices.h"

#include <string.h>

hone_status device_open(device_place *p, const char *name, hone_error *error) {
  uint32_t index = 0;
  *p = (device_place){0};
  hone_status s = hn_backend_find(name, &p->backend, &index, error);
  if (!s) s = p->backend->open(index, 1, NULL, &p->device, error);
  if (!s) s = p->backend->queue_open(p->device, &p->queue, error);
  return s;
}

void device_close(device_place *p) {
  p->backend->queue_close(p->device, p->queue);
  p->backend->close(p->device);
}

hone_status device_run_segment(const device_place *p, const hone_tactic_desc *t, hone_step_run *run,
                               hone_error *error) {
  hn_segment *segment = NULL;
  hone_status s = p->backend->prepare(p->device, t, run, error);
  if (s) return s;
  s = p->backend->capture_begin(p->device, p->queue, error);
  if (s) return s;
  s = p->backend->launch(p->device, p->queue, t, run, error);
  hone_error other = {0};
  const hone_status ended =
      p->backend->capture_end(p->device, p->queue, s ? NULL : &segment, s ? &other : error);
  if (!s) s = ended;
  if (!s) s = p->backend->segment_launch(p->device, p->queue, segment, error);
  const hone_status done = p->backend->sync(p->device, p->queue, s ? &other : error);
  if (segment) p->backend->segment_free(p->device, segment);
  return s ? s : done;
}

bool device_wants(const char *list, const char *tactic) {
  bool wanted = !list || *list == '-';
  for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
    const bool without = *p == '-';
    const char *name = p + without;
    const size_t n = strcspn(name, "*,");
    if (!strncmp(tactic, name, n) && (name[n] == '*' || !tactic[n])) wanted = !without;
  }
  return wanted;
}

enum { MOST = 16 };

hone_status device_run_step(const device_place *p, const hone_tactic_desc *t, const hone_step *step,
                            const void *const in[], void *const out[], bool in_place, hone_error *error) {
  const hn_backend *b = p->backend;
  const hone_machine *m = b->machine(p->device);
  hone_tactic_need need = {0};
  void *from[MOST] = {NULL}, *to[MOST] = {NULL};
  hone_status s = t->need ? t->need(step, m, &need, error) : HONE_OK;
  void *blob = b->alloc(p->device, need.blob_bytes + 64),
       *workspace = b->alloc(p->device, need.workspace_bytes + 64),
       *packed = hn_aligned(64, need.blob_bytes + 64);
  if (!s) s = hn_tactic_pack(t, step, m, packed, need.blob_bytes, error);
  if (!s) s = b->copy(p->device, p->queue, blob, packed, need.blob_bytes + 64, error);
  for (uint32_t i = 0; i < step->n_inputs && !s; i++) {
    const size_t bytes = (size_t)hone_desc_bytes(&step->input[i].desc);
    from[i] = b->alloc(p->device, bytes + 64);
    if (bytes) s = b->copy(p->device, p->queue, from[i], in[i], bytes, error);
  }
  for (uint32_t i = 0; i < step->n_outputs && !s; i++) {
    const size_t bytes = (size_t)hone_desc_bytes(&step->output[i].desc);
    to[i] = in_place && i == 0 ? from[0] : b->alloc(p->device, bytes + 64);
    if (in_place && i == 0) continue;
    memset(out[i], 0xff, bytes);
    if (bytes) s = b->copy(p->device, p->queue, to[i], out[i], bytes, error);
  }
  const void *read[MOST];
  for (int i = 0; i < MOST; i++) read[i] = from[i];
  hone_step_run run = {.step = step, .in = read, .out = to, .blob = blob, .workspace = workspace};
  if (!s) s = device_run_segment(p, t, &run, error);
  for (uint32_t i = 0; i < step->n_outputs && !s; i++) {
    const size_t bytes = (size_t)hone_desc_bytes(&step->output[i].desc);
    if (bytes) s = b->copy(p->device, p->queue, out[i], to[i], bytes, error);
  }
  if (!s) s = b->sync(p->device, p->queue, error);
  for (uint32_t i = 0; i < MOST; i++) {
    if (to[i] && to[i] != from[0]) b->free(p->device, to[i]);
    if (from[i]) b->free(p->device, from[i]);
  }
  b->free(p->device, blob), b->free(p->device, workspace);
  hn_free(packed);
  return s;
}
