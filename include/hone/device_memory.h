/* Memory near a device: what reaches it at the speed of its bus, or lies there already.
 *
 * Inputs and outputs in pinned memory cross without a copy by the host's processors; those in the device's
 * memory do not cross at all (hone_context_bind_input: the first step reads them there). Both are recognised
 * by their addresses, also where others allocated them (CUDA's own functions, another library). On a device
 * that shares the host's memory all kinds are plain memory. All functions may be called from any thread. */
#ifndef HONE_DEVICE_MEMORY_H
#define HONE_DEVICE_MEMORY_H

#include <hone/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* *out: `bytes` bytes (0: 1) of HONE_MEMORY_PINNED or HONE_MEMORY_DEVICE, aligned to 256 bytes, with any
 * contents. HONE_ERROR_MEMORY: there is none left; HONE_ERROR_USAGE: another kind. Free it with
 * hone_memory_free before the engine. Takes milliseconds: keep it. */
HONE_API hone_status hone_memory_alloc(hone_engine *engine, hone_memory_kind kind, size_t bytes, void **out,
                                       hone_error *error);
/* Waits for what the device was given before: it may still use the memory. NULL for none. */
HONE_API void hone_memory_free(hone_engine *engine, void *memory);

/* Pins memory of the caller (from malloc, a file's mapping) until hone_memory_unpin, which comes before its
 * end and before the engine's. Whole pages are pinned: two such pieces may not share one. */
HONE_API hone_status hone_memory_pin(hone_engine *engine, void *memory, size_t bytes, hone_error *error);
HONE_API hone_status hone_memory_unpin(hone_engine *engine, void *memory, hone_error *error);

/* Where the bytes lie, as a run would find: HONE_MEMORY_PAGEABLE, PINNED or DEVICE; UNKNOWN: another
 * device's, or partly there. */
HONE_API hone_memory_kind hone_memory_where(const hone_engine *engine, const void *memory, size_t bytes);

/* Copies between any two kinds, and waits until it is done. */
HONE_API hone_status hone_memory_copy(hone_engine *engine, void *to, const void *from, size_t bytes,
                                      hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
