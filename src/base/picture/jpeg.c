/* JPEG through libjpeg. Its errors jump back here; damaged data (libjpeg would paint it grey) is an error as
 * well. */
#include "base/picture/picture.h"

#include "base/error.h"
#include "base/late/jpeg.h"
#include "base/late/late.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SCANS = 200 }; /* a progressive file may demand any amount of work by its number of scans */

typedef struct trap {
  struct jpeg_error_mgr manager; /* first: libjpeg sees only this */
  jmp_buf back;
  char message[JMSG_LENGTH_MAX];
} trap;

static void on_error(j_common_ptr c) {
  trap *t = (trap *)c->err;
  t->manager.format_message(c, t->message);
  longjmp(t->back, 1);
}

static void on_message(j_common_ptr c, int level) {
  /* Stray bytes between markers are common and harmless; all other warnings mean lost pixels. */
  if (level < 0 && c->err->msg_code != JWRN_EXTRANEOUS_DATA) on_error(c);
}

static void no_output(j_common_ptr c) { (void)c; }

static void count_scans(j_common_ptr c) {
  if (((j_decompress_ptr)c)->input_scan_number > MAX_SCANS) {
    trap *t = (trap *)c->err;
    snprintf(t->message, sizeof t->message, "more than %d scans", MAX_SCANS);
    longjmp(t->back, 1);
  }
}

/* One row of the decoder's colours to RGB. Adobe's CMYK is stored inverted. */
static void to_rgb(const uint8_t *in, uint8_t *out, int64_t width, int components) {
  for (int64_t x = 0; x < width; x++) {
    const uint8_t *p = in + x * components;
    for (int k = 0; k < 3; k++)
      out[3 * x + k] = components == 1 ? p[0] : components == 3 ? p[k] : (uint8_t)(p[k] * p[3] / 255);
  }
}

hone_status hn_jpeg_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error) {
  volatile hone_status status = hn_late_need(HN_LATE_LIBRARY_JPEG, error);
  if (status != HONE_OK) return status;
  struct jpeg_decompress_struct jpeg;
  struct jpeg_progress_mgr progress = {.progress_monitor = count_scans};
  trap t;
  memset(&jpeg, 0, sizeof jpeg);
  jpeg.err = jpeg_std_error(&t.manager);
  t.manager.error_exit = on_error;
  t.manager.emit_message = on_message;
  t.manager.output_message = no_output;
  hn_mem_foreign_begin();
  if (setjmp(t.back)) {
    hn_mem_foreign_end();
    status = hn_fail(error, HONE_ERROR_INPUT, "bad JPEG: %.200s", t.message);
    goto done;
  }
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &progress;
  jpeg_mem_src(&jpeg, file.data, (unsigned long)file.size);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
  status = hn_picture_size(jpeg.image_width, jpeg.image_height, arena, out, error);
  if (status != HONE_OK) goto done;
  jpeg_start_decompress(&jpeg);
  JSAMPARRAY row = (*jpeg.mem->alloc_sarray)((j_common_ptr)&jpeg, JPOOL_IMAGE,
                                             jpeg.output_width * (JDIMENSION)jpeg.output_components, 1);
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t *to = out->rgb + (size_t)jpeg.output_scanline * 3 * (size_t)out->width;
    jpeg_read_scanlines(&jpeg, row, 1);
    to_rgb(row[0], to, out->width, jpeg.output_components);
  }
  jpeg_finish_decompress(&jpeg);
done:
  jpeg_destroy_decompress(&jpeg);
  return status;
}
