/* jansson, loaded when JSON is first written or read: few runs do, and to be linked with it costs every
 * start. The command's own functions of these names, which the library's code in it calls, too, hand on to
 * those that are loaded. One that is missing here is missing when the command is linked. */
#ifdef HN_LATE_JANSSON /* else the command is linked with it */
#include "cli/terminal/memory.h"
#include "cli/terminal/term.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                                         \
  X(json_t *, json_array, (void), ())                                                                        \
  X(int, json_array_append_new, (json_t * a, json_t * v), (a, v))                                            \
  X(json_t *, json_array_get, (const json_t *a, size_t i), (a, i))                                           \
  X(size_t, json_array_size, (const json_t *a), (a))                                                         \
  X(void, json_delete, (json_t * v), (v))                                                                    \
  X(char *, json_dumps, (const json_t *v, size_t flags), (v, flags))                                         \
  X(json_t *, json_false, (void), ())                                                                        \
  X(json_t *, json_integer, (json_int_t v), (v))                                                             \
  X(json_int_t, json_integer_value, (const json_t *v), (v))                                                  \
  X(json_t *, json_loadb, (const char *at, size_t n, size_t flags, json_error_t *e), (at, n, flags, e))      \
  X(json_t *, json_loads, (const char *text, size_t flags, json_error_t *e), (text, flags, e))               \
  X(json_t *, json_null, (void), ())                                                                         \
  X(double, json_number_value, (const json_t *v), (v))                                                       \
  X(json_t *, json_object, (void), ())                                                                       \
  X(json_t *, json_object_get, (const json_t *o, const char *key), (o, key))                                 \
  X(void *, json_object_iter, (json_t * o), (o))                                                             \
  X(const char *, json_object_iter_key, (void *i), (i))                                                      \
  X(void *, json_object_iter_next, (json_t * o, void *i), (o, i))                                            \
  X(json_t *, json_object_iter_value, (void *i), (i))                                                        \
  X(void *, json_object_key_to_iter, (const char *key), (key))                                               \
  X(int, json_object_set_new, (json_t * o, const char *key, json_t *v), (o, key, v))                         \
  X(size_t, json_object_size, (const json_t *o), (o))                                                        \
  X(int, json_object_update, (json_t * o, json_t * with), (o, with))                                         \
  X(json_t *, json_real, (double v), (v))                                                                    \
  X(double, json_real_value, (const json_t *v), (v))                                                         \
  X(json_t *, json_string, (const char *text), (text))                                                       \
  X(size_t, json_string_length, (const json_t *v), (v))                                                      \
  X(const char *, json_string_value, (const json_t *v), (v))                                                 \
  X(json_t *, json_true, (void), ())                                                                         \
  X(json_t *, json_vpack_ex, (json_error_t * e, size_t flags, const char *f, va_list v), (e, flags, f, v))   \
  X(json_t *, json_vsprintf, (const char *f, va_list v), (f, v))

#define FIELD(type, name, parameters, arguments) __typeof__(name) *name;
static struct { FUNCTIONS(FIELD) } jansson;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* There is no run without it where it is asked for, and who asks expects no answer but JSON. */
static void *symbol(void *library, const char *name) {
  void *found = library ? dlsym(library, name) : NULL;
  if (found) return found;
  int code = cli_error(HONE_ERROR_MISSING,
                       "jansson, which JSON is read and written by, is not on this machine: %s", dlerror());
  hone_writer_abandon_all();
  _exit(code);
}

static void load(void) {
  void *library = dlopen(HN_LATE_JANSSON, RTLD_NOW | RTLD_LOCAL);
  __typeof__(json_set_alloc_funcs) *use = symbol(library, "json_set_alloc_funcs");
  use(cli_json_room, free);
#define FIND(type, name, parameters, arguments) jansson.name = symbol(library, #name);
  FUNCTIONS(FIND)
}

#define HAND_ON(type, name, parameters, arguments)                                                           \
  type name parameters {                                                                                     \
    pthread_once(&once, load);                                                                               \
    return jansson.name arguments;                                                                           \
  }
FUNCTIONS(HAND_ON)

json_t *json_pack(const char *format, ...) {
  va_list values;
  va_start(values, format);
  json_t *made = json_vpack_ex(NULL, 0, format, values);
  va_end(values);
  return made;
}

json_t *json_sprintf(const char *format, ...) {
  va_list values;
  va_start(values, format);
  json_t *made = json_vsprintf(format, values);
  va_end(values);
  return made;
}
#else
typedef int cli_json_is_linked; /* no empty file */
#endif
