/* Recognises files that people take for ONNX models. */
#include "model/onnx/load.h"

#include <string.h>
#include <strings.h>

/* What a file begins with, at a byte offset. Text is compared without regard to case, after blanks. */
static const struct {
  uint8_t at, size;
  bool text;
  const char *bytes, *what;
} known[] = {
    {0, 9, true, "<!doctype", "this is an HTML page: the download failed"},
    {0, 5, true, "<html", "this is an HTML page: the download failed"},
    {0, 5, true, "<head", "this is an HTML page: the download failed"},
    {0, 5, true, "<?xml", "this is an XML file, not ONNX (OpenVINO's .xml and error pages look like this)"},
    {0, 8, true, "version ", "this is a git-lfs pointer: run 'git lfs pull' to get the model itself"},
    {0, 1, true, "{", "this is JSON: an error message of the download, or another format"},
    {0, 4, false, "PK\003\004",
     "this is a zip archive: unpack it, or export the model (PyTorch .pt files are such archives)"},
    {0, 2, false, "\200\002",
     "this is a Python pickle (an old PyTorch file): export the model with torch.onnx"},
    {0, 2, false, "\037\213", "this is compressed with gzip: unpack it"},
    {0, 8, false, "\211HDF\r\n\032\n", "this is HDF5 (Keras): convert the model with tf2onnx"},
    {4, 4, false, "TFL3", "this is TensorFlow Lite: convert the model with tf2onnx"},
    {4, 4, false, "ORTM", "this is ONNX Runtime's own format (.ort): use the .onnx file it was made from"},
    {0, 8, false, "HONEPLAN",
     "this is a saved plan: hone run, bench, profile and verify take it, the rest wants the model it was "
     "made of"},
    {0, 4, false, "\177ELF", "this is a program"},
    {0, 8, false, "\211PNG\r\n\032\n", "this is a PNG picture"},
    {0, 3, false, "\377\330\377", "this is a JPEG picture"},
    {0, 6, false, "\223NUMPY", "this is a NumPy array"},
};

const char *hn_onnx_sniff(const uint8_t *data, size_t size) {
  if (size == 0) return "the file is empty";
  size_t skip = size >= 3 && memcmp(data, "\357\273\277", 3) == 0 ? 3 : 0;
  while (skip < size && skip < 256 &&
         (data[skip] == ' ' || data[skip] == '\t' || data[skip] == '\r' || data[skip] == '\n'))
    skip++;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    size_t at = known[i].text ? skip : known[i].at;
    if (at + known[i].size > size) continue;
    const char *p = (const char *)data + at;
    if (known[i].text ? strncasecmp(p, known[i].bytes, known[i].size) == 0
                      : memcmp(p, known[i].bytes, known[i].size) == 0)
      return known[i].what;
  }
  size_t text = 0, zero = 0, n = size < 64 ? size : 64;
  for (size_t i = 0; i < n; i++) {
    text += (data[i] >= 0x20 && data[i] < 0x7f) || data[i] == '\n' || data[i] == '\r' || data[i] == '\t';
    zero += data[i] == 0;
  }
  return zero == n   ? "the file holds zeros: the download or copy failed"
         : text == n ? "this is a text file"
                     : NULL;
}
